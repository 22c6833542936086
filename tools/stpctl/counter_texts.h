// SPDX-License-Identifier: BSD-3-Clause
// What each counter counts, in a few words.
#pragma once

#include <string_view>

namespace stp::stpctl {

// "" for one that this version does not know.
std::string_view text_of_counter(std::string_view name);
// Frames that came to nothing.
bool counts_drops(std::string_view name);

}  // namespace stp::stpctl
