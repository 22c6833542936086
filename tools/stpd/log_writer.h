// SPDX-License-Identifier: BSD-3-Clause
// Writes lines to a descriptor that may block, a pipe that nobody reads say, on a thread of its
// own: who has something to say never waits. What does not fit meanwhile is dropped, and the number
// of lines told once there is room.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace stp::stpd {

class LogWriter {
 public:
  // What is put into the log where lines are missing.
  using Missing = std::function<std::string(std::size_t lines)>;
  static constexpr std::size_t kMostBytes = std::size_t{256} << 10;  // that wait to be written

  // `file` stays the caller's, and open for as long as the process lives.
  LogWriter(int file, Missing missing);
  // Writes what there is; leaves it, and the thread, behind if that takes longer than kFarewell.
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
