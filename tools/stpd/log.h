// SPDX-License-Identifier: BSD-3-Clause
// stpd's log: lines on stderr; whoever started it adds times and keeps them.
#pragma once

#include <cstdio>
#include <string>

namespace stp::stpd {

inline void log(const std::string& text) {
  // One call per line, so that lines of two threads do not mix.
  std::fputs(("stpd: " + text + "\n").c_str(), stderr);
}

}  // namespace stp::stpd
