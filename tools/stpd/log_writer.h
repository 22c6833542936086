// SPDX-License-Identifier: BSD-3-Clause
// Writes lines to a descriptor that may block (for example a pipe that nobody reads) on a separate
// thread, so a caller never waits. If the buffer is full, lines are dropped; their number is
// written once there is room.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace stp::stpd {

class LogWriter {
 public:
  // The text in the log in place of the missing lines.
  using Missing = std::function<std::string(std::size_t lines)>;
  static constexpr std::size_t kMostBytes = std::size_t{256} << 10;  // that wait to be written

  // The caller owns `file` and keeps it open until the process ends.
  LogWriter(int file, Missing missing);
  // Writes the remaining lines. If that takes longer than kFarewell, gives up the lines and the
  // thread.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void write(std::string line);
  // False: not all of it could be written within `patience`.
  bool flush(std::chrono::milliseconds patience);

  static constexpr std::chrono::milliseconds kFarewell{1'000};

 private:
  struct State;
  const std::shared_ptr<State> state_;  // a lost thread keeps it
};

}  // namespace stp::stpd
