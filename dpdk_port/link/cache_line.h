// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace stp::port {

// What different threads write stands this far apart, so that they do not wait for each other.
inline constexpr std::size_t kCacheLine = 64;

constexpr std::size_t whole_cache_lines(std::size_t bytes) {
  return (bytes + kCacheLine - 1) & ~(kCacheLine - 1);
}

}  // namespace stp::port
