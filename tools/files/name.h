// SPDX-License-Identifier: BSD-3-Clause
// File names that come from another machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stp::files {

inline constexpr std::size_t kMaxNameLength = 255;  // NAME_MAX of every usual file system
inline constexpr std::size_t kMaxPathLength = 4095;
inline constexpr std::string_view kTemporaryPrefix = ".stp-recv.";

// The components of a path below a receiver's directory, where all may be created there: none is
// empty, "." or "..", too long, one of our own temporary files, or has control characters.
std::optional<std::vector<std::string>> accepted_path(std::string_view path);

// The last component of a path; empty where it has none ("/", "..").
std::string base_name(std::string_view path);

// A name for a file under way, unique on this host.
std::string temporary_name();

}  // namespace stp::files
