// SPDX-License-Identifier: BSD-3-Clause
// Lines of the processor's caches, and having it bring memory there that is about to be used, while
// it does something else. Of many objects in turn, each waits for some dozens of lines otherwise,
// one after the other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stp {

inline constexpr std::size_t kCacheLine = 64;

// The cache line at that address, which may be any. Into the second-level cache: the first one has
// few places for lines on their way, and AMD's processors leave out what finds none free.
inline void fetch_line(const void* at) {
  __builtin_prefetch(at, 0, 2);
  // A function that only fetches has no effect that GCC knows of: it would leave out the call.
  asm volatile("");
}
// The same, of one that is about to be written and that another processor may have: so the first
// write to it does not wait for that one. Processors that do not know the instruction skip it.
inline void fetch_line_to_write(void* at) {
#ifdef __x86_64__
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 1);
#endif
}
// All lines from `begin` to before `end`.
inline void fetch_lines(const void* begin, const void* end) {
  const auto* const last = static_cast<const std::byte*>(end);
  const auto* at = static_cast<const std::byte*>(begin);
  at -= reinterpret_cast<std::uintptr_t>(at) % kCacheLine;
  for (; at < last; at += kCacheLine) fetch_line(at);
}

}  // namespace stp
