// SPDX-License-Identifier: BSD-3-Clause
// stpd's log: lines on stderr. As text for whoever started it, who adds times and keeps them; or
// one JSON object each, with a time of its own.
#pragma once

#include <string>

#include "libst/service/log_level.h"

namespace stp::stpd {

using service::LogLevel;

enum class LogFormat { kText, kJson };

// May change while threads log.
void set_log(LogLevel least, LogFormat format);
// `link`: whose line it is; "" where there is only one, or it is about all.
void log(LogLevel level, const std::string& text, const std::string& link = {});

}  // namespace stp::stpd
