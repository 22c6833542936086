// SPDX-License-Identifier: BSD-3-Clause
// A link that stpd runs: requests go over its socket, headers through rings in shared memory.
#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "libst/client/backend.h"
#include "libst/os/unique_fd.h"

namespace stp::client {

class StpdBackend final : public Backend {
 public:
  static int open(const std::string& path, std::shared_ptr<Backend>& out);
  explicit StpdBackend(service::UniqueFd socket) : socket_(std::move(socket)) {}
  ~StpdBackend() override;

  int exchange(Request& request, Payload& payload, Reply& reply) override;
  void rung() override;
  bool attend(Condition condition, Time deadline) override;
  [[nodiscard]] bool lends_memory() const override { return true; }
  [[nodiscard]] int error() const override { return error_.load(std::memory_order_acquire); }

 private:
  int greet();
  int ask(const Request& request, std::span<const int> fds, Reply& reply,
          std::vector<service::UniqueFd>& received);
  int ask_to_map(Request& request, Payload& payload, Reply& reply);
  void watch();
  void lost() { error_.store(-ENOTCONN, std::memory_order_release); }

  // How long a caller polls before it sleeps: stpd answers within microseconds, or waits itself.
  static constexpr Time kPatience = 10 * kMicrosecond;

  service::UniqueFd socket_;
  service::UniqueFd bell_;     // stpd sleeps on it
  service::UniqueFd stop_;     // ends the watcher
  std::mutex mutex_;           // one request at a time
  std::atomic<int> error_{0};  // not 0: stpd has gone
  // Detects the end of stpd, also for programs that only poll their rings.
  std::thread watcher_;
};

}  // namespace stp::client
