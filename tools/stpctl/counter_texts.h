// SPDX-License-Identifier: BSD-3-Clause
// A short description of each counter.
#pragma once

#include <string_view>

namespace stp::stpctl {

// Returns "" for a counter that this version does not know.
std::string_view text_of_counter(std::string_view name);
// Returns whether the counter counts dropped frames.
bool counts_drops(std::string_view name);

}  // namespace stp::stpctl
