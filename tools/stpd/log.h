// SPDX-License-Identifier: BSD-3-Clause
// stpd's log: lines on stderr. As text for whoever started it, who adds times and keeps them; or
// one JSON object each, with a time of its own.
#pragma once

#include <memory>
#include <string>

#include "libst/service/log_level.h"
#include "tools/stpd/log_writer.h"

namespace stp::stpd {

using service::LogLevel;

enum class LogFormat { kText, kJson };

// May change while threads log.
void set_log(LogLevel least, LogFormat format);
// `link`: whose line it is; "" where there is only one, or it is about all.
void log(LogLevel level, const std::string& text, const std::string& link = {});

// While one lives, a thread writes the lines, and no other thread waits for stderr. Before, and
// after, whoever logs writes them itself. One at a time.
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
