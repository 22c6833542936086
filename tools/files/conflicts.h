// SPDX-License-Identifier: BSD-3-Clause
// Options of stp-send that contradict each other, or would have no effect.
#pragma once

#include <string>
#include <vector>

#include "tools/files/send_all.h"

namespace stp::files {

// What is wrong, and the remedy; "": nothing. `filters`: which of --exclude, --include and
// --exclude-from were given, in that order. No file is looked at.
std::string conflict_of(const Sending& sending, const std::vector<std::string>& filters,
                        bool quiet);

}  // namespace stp::files
