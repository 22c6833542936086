// SPDX-License-Identifier: BSD-3-Clause
// Has the processor bring memory into its caches that is about to be used, while it does something
// else. Of many objects in turn, each waits for some dozens of lines otherwise, one after the
// other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stp {

// Where there are fewer objects of a kind, the caches hold them anyway.
inline constexpr std::size_t kManyObjects = 256;
// Of so many in a row, what is needed is brought at a time.
inline constexpr std::size_t kFetchedAhead = 8;

// The cache line at that address, which may be any.
inline void fetch_line(const void* at) {
  __builtin_prefetch(at);
}
// All lines from `begin` to before `end`.
inline void fetch_lines(const void* begin, const void* end) {
  constexpr std::size_t kLine = 64;
  const auto* const last = static_cast<const std::byte*>(end);
  const auto* at = static_cast<const std::byte*>(begin);
  for (at -= reinterpret_cast<std::uintptr_t>(at) % kLine; at < last; at += kLine) fetch_line(at);
}

}  // namespace stp
