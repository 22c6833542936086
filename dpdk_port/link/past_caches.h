// SPDX-License-Identifier: BSD-3-Clause
// Writing past the caches, for another processor that reads next. An ordinary write waits until
// that one has given its copy of the line away, which takes as long as the two are apart, and few
// such writes can wait. One past the caches waits for nothing, and the reader brings the line from
// memory. So it is for many lines: a single one comes later that way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

#include "stp/base/fetch_ahead.h"

namespace stp::port {

// Stores that follow are not seen before what has been written past the caches. Call it before
// another thread may read that.
inline void finish_writes_past_caches() {
#ifdef __x86_64__
  _mm_sfence();
#endif
}

// Copies `length` bytes to the beginning of a cache line, and zeros to its end or that of the last
// line. At least 8 bytes.
inline void write_past_caches(std::byte* to, const std::byte* from, std::size_t length) {
#ifdef __x86_64__
  constexpr std::size_t kWord = sizeof(std::uint64_t), kPiece = sizeof(__m128i);
  const auto* const end = from + length;
  for (; from + kPiece <= end; from += kPiece, to += kPiece)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  const auto put = [&to](std::uint64_t word) {
    _mm_stream_si64(reinterpret_cast<long long*>(to), static_cast<long long>(word));
    to += kWord;
  };
  const auto word_at = [](const std::byte* at) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, kWord);
    return word;
  };
  if (from + kWord <= end) {
    put(word_at(from));
    from += kWord;
  }
  // The last bytes are those of the word that ends with them.
  if (from < end) put(word_at(end - kWord) >> 8 * (kWord - static_cast<std::size_t>(end - from)));
  while (reinterpret_cast<std::uintptr_t>(to) % kCacheLine != 0) put(0);
#else
  std::memcpy(to, from, length);
  std::memset(to + length, 0, (kCacheLine - length % kCacheLine) % kCacheLine);
#endif
}

}  // namespace stp::port
