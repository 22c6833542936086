// SPDX-License-Identifier: BSD-3-Clause
// stpd's log: lines on stderr. A line is text without a time, which the program that started stpd
// may add; or text behind a time; or a JSON object with its own time. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "libst/service/log_budget.h"

namespace stp::stpd {

// Writes lines to a descriptor that may block (for example a pipe that nobody reads) on a separate
// thread, so a caller never waits. If the buffer is full, lines are dropped; their number is
// written once there is room.
class LogWriter {
 public:
  // Returns the line to write in place of the missing ones.
  using Missing = std::function<std::string(std::size_t lines)>;
  static constexpr std::size_t kMostBytes = std::size_t{256} << 10;  // size of the buffer

  // The caller owns `file` and keeps it open until the process ends.
  LogWriter(int file, Missing missing);
  // Writes the remaining lines. If that takes longer than kFarewell, gives up the lines and the
  // thread.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void write(std::string line);
  // Waits until all lines are written. Returns false if that takes longer than `patience`.
  bool flush(std::chrono::milliseconds patience);

  static constexpr std::chrono::milliseconds kFarewell{1'000};

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with the thread, which may outlive this object
};

using service::LogLevel;

enum class LogFormat { kText, kTimed, kJson };

// May be called while threads log.
void set_log(LogLevel least, LogFormat format);
// `link`: the link that the line is about; "": there is only one, or the line is about all.
void log(LogLevel level, const std::string& text, const std::string& link = {});

// While a LogThread exists, its thread writes the lines and no other thread waits for stderr.
// Before and after that, each thread writes its own lines. At most one may exist.
class LogThread {
 public:
  LogThread();
  ~LogThread();
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;

 private:
  std::shared_ptr<LogWriter> writer_;
};

}  // namespace stp::stpd
