// SPDX-License-Identifier: BSD-3-Clause
// A link that stpd runs, or one of its shards: requests go over stpd's socket, headers through
// rings in shared memory.
#pragma once

#include "libst/client/backend.h"
#include "libst/client/stpd_connection.h"

namespace stp::client {

class StpdBackend final : public Backend {
 public:
  // What stpd says of a link when a program comes to its first shard.
  struct Welcome {
    std::uint32_t shards = 1;
    std::uint32_t first = 0;  // where to begin, so that programs are spread over the shards
  };
  // `shard`: from 0 on.
  static int open(const std::shared_ptr<StpdConnection>& stpd, std::uint32_t shard,
                  std::shared_ptr<Backend>& out, Welcome& welcome);
  StpdBackend(std::shared_ptr<StpdConnection> stpd, std::uint32_t shard)
      : stpd_(std::move(stpd)), shard_(shard) {}

  int exchange(Request& request, Payload& payload, Reply& reply) override;
  void rung() override;
  bool attend(Condition condition, Time deadline) override;
  [[nodiscard]] bool lends_memory() const override { return true; }
  [[nodiscard]] int error() const override { return stpd_->error(); }

 private:
  int greet(Welcome& welcome);
  int ask_to_map(Request& request, Payload& payload, Reply& reply);

  // How long a caller polls before it sleeps: stpd answers within microseconds, or waits itself.
  static constexpr Time kPatience = 10 * kMicrosecond;

  const std::shared_ptr<StpdConnection> stpd_;
  const std::uint32_t shard_;
  service::UniqueFd bell_;  // the shard's thread sleeps on it
};

}  // namespace stp::client
