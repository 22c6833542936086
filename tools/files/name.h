// SPDX-License-Identifier: BSD-3-Clause
// File names that come from another machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stp::files {

inline constexpr std::size_t kMaxNameLength = 255;  // NAME_MAX of every usual file system
inline constexpr std::string_view kTemporaryPrefix = ".stp-recv.";

// The base name of what a sender wrote, where a file of that name may be created: not empty, "."
// or "..", not too long, without control characters, and none of our own temporary files.
std::optional<std::string> accepted_name(std::string_view name);

// The same text with everything that a terminal would act upon replaced by '?'.
std::string printable(std::string_view text);

}  // namespace stp::files
