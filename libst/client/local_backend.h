// SPDX-License-Identifier: BSD-3-Clause
// A link, or one of its shards, that runs in this process. A thread that waits in a libst call
// drives it; a background thread drives it when no caller does.
#pragma once

#include "libst/client/backend.h"
#include "libst/service/poll_loop.h"

namespace stp::client {

class LocalBackend final : public Backend {
 public:
  // Opens all shards of a link. The first one has the device and is destroyed last.
  static int open(const port::LinkConfig& link, std::vector<std::shared_ptr<Backend>>& out);
  explicit LocalBackend(std::unique_ptr<port::Port> port);
  ~LocalBackend() override;

  void rung() override;
  void kick(std::uint32_t bell) override;
  bool attend(Condition condition, Time deadline) override;
  [[nodiscard]] int error() const override { return 0; }
  void leave() override;

 private:
  int exchange(service::RequestMessage& request, Payload& payload,
               service::ReplyMessage& reply) override;
  bool leaves_at_once();
  void wake_loop();
  void answer_bells();
  void answer_posts();
  int greet();
  bool drive(Condition condition, Time deadline);

  // How long a caller drives the link before it sleeps: about a round trip to a peer that must wake
  // up.
  static constexpr Time kPatience = 50 * kMicrosecond;
  // The first request after a call that looked for something leaves at once, and so do the first
  // kAtOnce requests after each look of the loop (PollLoop::looks). Further ones leave in bursts of
  // kBurst, with a call that looks, or when the loop runs. So requests of a program that sends a
  // few or waits for answers leave at once.
  static constexpr std::uint32_t kAtOnce = 8, kBurst = 32;
  // Timeout for peers to confirm the end of their connections when the process ends.
  static constexpr Time kFarewell = 200 * kMillisecond;

  service::Service service_;
  service::PollLoop loop_;
  service::ClientId client_ = 0;
  const bool yields_;  // there are too few cores to spin on one
  // row_: loop_.looks() at the last post (upper 32 bits), and the number of posts since that look.
  // driven_: loop_.visits() when a post drove the link last.
  std::atomic<std::uint64_t> row_{0}, driven_{0};
  std::atomic<bool> passed_on_{false};  // a post found the lock held and left it to the holder
};

}  // namespace stp::client
