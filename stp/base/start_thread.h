// SPDX-License-Identifier: BSD-3-Clause
// A new thread, or an error that says what to raise where none is to be had.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

namespace stp {

class NoThread : public std::system_error {
 public:
  explicit NoThread(std::error_code code) : std::system_error(code) {}
  [[nodiscard]] const char* what() const noexcept override { return kText; }

  static constexpr auto kCause = "no thread can be started";
  static constexpr auto kRemedy = "raise ulimit -u, TasksMax or the pids limit";
  static constexpr auto kText =
      "no thread can be started: raise ulimit -u, TasksMax or the pids limit";
};

// As std::thread(work...), but throws NoThread.
template <typename... Work>
std::thread start_thread(Work&&... work) {
  try {
    return std::thread(std::forward<Work>(work)...);
  } catch (const std::system_error& error) {
    throw NoThread(error.code());
  }
}

}  // namespace stp
