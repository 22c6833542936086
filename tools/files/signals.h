// SPDX-License-Identifier: BSD-3-Clause
// SIGINT and SIGTERM as a request to end. A separate thread handles them, so the code need not be
// safe inside a signal handler. Create it before any other thread: they inherit its signal mask.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace stp::files {

class Signals {
 public:
  // `on_stop` is called once, from that thread, at the first signal.
  explicit Signals(std::function<void()> on_stop = {});
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] const std::atomic<bool>& stop() const { return stop_; }

 private:
  void wait();

  std::atomic<bool> stop_{false};
  std::function<void()> on_stop_;
  int signal_fd_, end_fd_;
  std::thread thread_;
};

}  // namespace stp::files
