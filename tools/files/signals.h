// SPDX-License-Identifier: BSD-3-Clause
// SIGINT, SIGTERM and SIGHUP as a request to end. A separate thread handles them, so the code need
// not be safe inside a signal handler. Create it before any other thread: they inherit its signal
// mask. A second signal ends the process at once, whatever it waits for; but who presses Ctrl-C
// once sends two where what runs the program passes its own on, so those that come together are
// one.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace stp::files {

class Signals {
 public:
  // How long after the first one signals count as the same.
  static constexpr std::chrono::milliseconds kTogether{100};

  // `program`: its name, for the line about an end at once. `grace`: what the first signal leaves
  // it to end by itself, before it ends at once.
  explicit Signals(std::string program, std::chrono::milliseconds grace = std::chrono::seconds(1));
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] const std::atomic<bool>& stop() const { return stop_; }
  // From now on the first signal leaves it all the time that it needs.
  void take_time() { takes_time_ = true; }

 private:
  void wait();
  [[nodiscard]] bool await_signal(int milliseconds) const;

  std::atomic<bool> stop_{false}, takes_time_{false};
  const std::string program_;
  const std::chrono::milliseconds grace_;
  int signal_fd_, end_fd_;
  std::thread thread_;
};

}  // namespace stp::files
