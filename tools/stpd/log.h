// SPDX-License-Identifier: BSD-3-Clause
// stpd's log: lines on stderr. A line is text without a time, which the program that started stpd
// may add; or text behind a time; or a JSON object with its own time. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "libst/service/log_budget.h"
#include "tools/stpd/log_writer.h"

namespace stp::stpd {

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
