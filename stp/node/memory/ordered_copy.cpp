// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/memory/ordered_copy.h"

#include <cstdint>
#include <cstring>

#include "stp/base/assert.h"

namespace stp {
namespace {

using Middle = void(std::byte* to, const std::byte* from, std::size_t length);

constexpr std::size_t kVector = 32;
constexpr std::size_t kLong = 128;  // from this length on, vectors copy the middle

bool at_multiple(const std::byte* at, std::size_t size) {
  return reinterpret_cast<std::uintptr_t>(at) % size == 0;
}

// One naturally aligned store.
template <typename Integer>
[[gnu::always_inline]] inline void step(std::byte*& to, const std::byte*& from) {
  using Place [[gnu::may_alias]] = Integer;
  Integer value;
  std::memcpy(&value, from, sizeof value);
  __atomic_store_n(reinterpret_cast<Place*>(to), value, __ATOMIC_RELEASE);
  to += sizeof value;
  from += sizeof value;
}

// `to` is aligned to a Vector, `length` a multiple of one. A volatile store happens once and in
// place: no compiler turns these into a memcpy.
template <typename Vector>
[[gnu::always_inline]] inline void copy_vectors(std::byte* to, const std::byte* from,
                                                std::size_t length) {
  using Place [[gnu::may_alias]] = volatile Vector;
  const auto one = [&](std::size_t at) __attribute__((always_inline)) {
    Vector value;
    std::memcpy(&value, from + at, sizeof value);
    *reinterpret_cast<Place*>(to + at) = value;
  };
  STP_ASSERT(at_multiple(to, sizeof(Vector)) && length % sizeof(Vector) == 0,
             "vectors are copied to where they are aligned");
  constexpr std::size_t kAtOnce = 8 * sizeof(Vector);
  for (; length >= kAtOnce; length -= kAtOnce, to += kAtOnce, from += kAtOnce) {
    one(0);
    one(sizeof(Vector));
    one(2 * sizeof(Vector));
    one(3 * sizeof(Vector));
    one(4 * sizeof(Vector));
    one(5 * sizeof(Vector));
    one(6 * sizeof(Vector));
    one(7 * sizeof(Vector));
  }
  for (std::size_t at = 0; at < length; at += sizeof(Vector)) one(at);
}

using Half [[gnu::vector_size(16)]] = std::int64_t;

void copy_halves(std::byte* to, const std::byte* from, std::size_t length) {
  copy_vectors<Half>(to, from, length);
}

#ifdef __x86_64__
using Whole [[gnu::vector_size(kVector)]] = std::int64_t;

[[gnu::target("avx")]] void copy_whole(std::byte* to, const std::byte* from, std::size_t length) {
  copy_vectors<Whole>(to, from, length);
}

Middle* const copy_middle = __builtin_cpu_supports("avx") ? copy_whole : copy_halves;
#else
Middle* const copy_middle = copy_halves;
#endif

// Copies fewer bytes than a word, in as few stores as the alignment permits.
void copy_few(std::byte* to, const std::byte* from, const std::byte* end) {
  while (to != end) {
    const auto left = static_cast<std::size_t>(end - to);
    if (left >= 4 && at_multiple(to, 4))
      step<std::uint32_t>(to, from);
    else if (left >= 2 && at_multiple(to, 2))
      step<std::uint16_t>(to, from);
    else
      step<std::uint8_t>(to, from);
  }
}

}  // namespace

void copy_any_in_order(std::byte* to, const std::byte* from, std::size_t length) {
  const auto apart = reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
  if (apart < length) {
    std::memmove(to, from, length);
    return;
  }
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  auto* const end = to + length;
  if (length >= kWord) {
    if (!at_multiple(to, 2)) step<std::uint8_t>(to, from);
    if (!at_multiple(to, 4)) step<std::uint16_t>(to, from);
    if (!at_multiple(to, kWord)) step<std::uint32_t>(to, from);
    if (length >= kLong) {
      while (!at_multiple(to, kVector)) step<std::uint64_t>(to, from);
      const auto middle = (static_cast<std::size_t>(end - to) - kWord) / kVector * kVector;
      copy_middle(to, from, middle);
      to += middle;
      from += middle;
    }
    while (end - to >= static_cast<std::ptrdiff_t>(kWord)) step<std::uint64_t>(to, from);
  }
  STP_ASSERT(to <= end && end - to < static_cast<std::ptrdiff_t>(kWord),
             "less than a word is left at the end");
  copy_few(to, from, end);
}

}  // namespace stp
