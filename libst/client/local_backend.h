// SPDX-License-Identifier: BSD-3-Clause
// A link that this process runs itself, or one of its shards. Whoever is inside a libst call and
// has to wait drives it; a thread in the background does when nobody is.
#pragma once

#include "libst/client/backend.h"
#include "libst/service/poll_loop.h"

namespace stp::client {

class LocalBackend final : public Backend {
 public:
  // All shards of a link, the one that has the device first. It goes last.
  static int open(const port::LinkConfig& link, std::vector<std::shared_ptr<Backend>>& out);
  explicit LocalBackend(std::unique_ptr<port::Port> port);
  ~LocalBackend() override;

  int exchange(Request& request, Payload& payload, Reply& reply) override;
  void rung() override;
  void kick(std::uint32_t bell) override;
  bool attend(Condition condition, Time deadline) override;
  [[nodiscard]] int error() const override { return 0; }
  void leave() override;

 private:
  bool leaves_at_once();
  void wake_loop();
  void answer_bells();
  int greet();
  bool drive(Condition condition, Time deadline);

  // How long a caller drives before it sleeps: about a round trip to a peer that has to be woken.
  static constexpr Time kPatience = 50 * kMicrosecond;
  // The first request after a call that looked for something leaves at once, and so do so many
  // after each look of the loop's (PollLoop::looks); further ones in bursts, with a call that
  // looks, or when the loop does. Who sends a few, or waits for answers, has them leave at once.
  static constexpr std::uint32_t kAtOnce = 8, kBurst = 32;
  // How long the peers are given to confirm that their connections have ended.
  static constexpr Time kFarewell = 200 * kMillisecond;

  service::Service service_;
  service::PollLoop loop_;
  service::ClientId client_ = 0;
  const bool yields_;  // too few cores to spin on one
  // Of posts: when the loop last looked around (32 bits), and how many since; when one last drove.
  std::atomic<std::uint64_t> row_{0}, driven_{0};
};

}  // namespace stp::client
