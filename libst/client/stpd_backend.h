// SPDX-License-Identifier: BSD-3-Clause
// A shard of a link that stpd runs: requests go over stpd's socket, headers through rings in shared
// memory.
#pragma once

#include "libst/client/backend.h"
#include "libst/client/stpd_connection.h"

namespace stp::client {

class StpdBackend final : public Backend {
 public:
  // What stpd's reply to a hello says of the link.
  struct Welcome {
    std::uint32_t shards = 1;
    std::uint32_t first = 0;  // the shard to begin with, so that programs are spread over them
  };
  // Says hello to a shard. `shard`: its number, from 0. Returns 0 or a negative errno.
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
  int ask_to_map(Request& request, Payload& payload, Reply& reply, bool anew);
  int tell_mapped(std::uint64_t vc);
  void give_back(std::uint64_t vc);

  // How long a caller polls before it sleeps. If stpd does not answer within microseconds, it waits
  // for a frame itself.
  static constexpr Time kPatience = 10 * kMicrosecond;

  const std::shared_ptr<StpdConnection> stpd_;
  const std::uint32_t shard_;
  service::UniqueFd bell_;  // an eventfd: writing it wakes the shard's thread
};

}  // namespace stp::client
