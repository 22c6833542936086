// SPDX-License-Identifier: BSD-3-Clause
// The line that shows on a terminal how far a transfer is.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stp::files {

struct ProgressView {
  std::string name;                   // of what is under way; without control characters
  bool moves = true;                  // false: no bytes are on their way; only files are counted
  std::uint64_t done = 0;             // bytes
  std::optional<std::uint64_t> size;  // nullopt: nobody knows, as of a stream
  double rate = 0;                    // bytes per second, of the last seconds
  std::size_t file = 0, files = 0;  // number of the file, and of all of them. 1 or less: not shown
  bool more = false;                // there will be more files than that
  std::optional<std::chrono::seconds> stalled;  // for so long no byte has moved
  std::string trouble;                          // why it is stalled; "": nobody knows
};

// Fits into so many columns.
std::string progress_line(const ProgressView& view, std::size_t columns);

// The columns that a terminal needs for a text in UTF-8.
std::size_t columns_of(std::string_view text);
// At most so many columns: leaves out the middle where it is longer.
std::string shortened(std::string_view text, std::size_t columns);

}  // namespace stp::files
