// SPDX-License-Identifier: BSD-3-Clause
// Runs stpd on the loop link and watches it like systemd and an administrator: what it holds,
// whether its threads make progress, and whether it ends on SIGTERM.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "libst/os/unique_fd.h"
#include "tests/hostile/processor_waits.h"
#include "tests/temporary_directory.h"

namespace stp::hostile {

// Sanitizers make everything slower and larger.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
inline constexpr int kSlowness = kSanitized ? 4 : 1;

struct Usage {
  std::size_t resident = 0;  // bytes
  std::size_t files = 0, threads = 0, mappings = 0;
};

// Of tests that do not care: STP_HOSTILE_LINK, or loop.
std::string usual_link();

class Daemon {
 public:
  explicit Daemon(const std::vector<std::string>& options = {},
                  const std::string& link = usual_link());
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  // The threads that it had when it was ready: those that serve the link and the socket.
  [[nodiscard]] Servers servers() const { return {pid_, threads_}; }
  [[nodiscard]] std::string directory() const { return directory_.path(); }
  [[nodiscard]] bool alive() const;
  [[nodiscard]] Usage usage() const;
  // Waits until it holds no more than before: exactly for descriptors and threads, approximately
  // for the rest. Returns "" or what it still holds.
  [[nodiscard]] std::string returns_to(const Usage& before) const;
  // The longest time without a watchdog notification.
  [[nodiscard]] std::chrono::milliseconds longest_silence() const;
  // Ends stpd with SIGTERM. Returns "" or what was wrong: too late, an exit status, a sanitizer's
  // report.
  std::string end();
  [[nodiscard]] std::string log() const;

 private:
  void watch();
  [[nodiscard]] bool await_ready() const;

  const bool over_udp_;
  test::TemporaryDirectory directory_;
  const std::string socket_ = directory_.path() + "/stpd.sock";
  os::UniqueFd notices_;
  pid_t pid_ = -1;
  std::vector<pid_t> threads_;
  bool ready_ = false;
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> longest_silence_ms_{0};
  std::thread watcher_;
};

}  // namespace stp::hostile
