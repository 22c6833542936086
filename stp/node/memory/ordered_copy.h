// SPDX-License-Identifier: BSD-3-Clause
// Copies into memory that another thread may poll.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stp {

// Stores each byte once and in ascending order: a reader that sees one of the last 8 bytes with an
// acquire load sees all bytes stored before it. Stores aligned words whole, the last ones with
// release. In the middle of long copies, lines of 64 bytes keep the order on x86-64 only. If `to`
// lies inside [from, from + length) this is only a memmove.
// protocol: 8.14
void copy_any_in_order(std::byte* to, const std::byte* from, std::size_t length);

inline void copy_in_order(std::byte* to, const std::byte* from, std::size_t length) {
  using Word [[gnu::may_alias]] = std::uint64_t;
  const bool word =
      length == sizeof(Word) && reinterpret_cast<std::uintptr_t>(to) % sizeof(Word) == 0;
  if (!word) return copy_any_in_order(to, from, length);
  std::uint64_t value;
  std::memcpy(&value, from, sizeof value);
  __atomic_store_n(reinterpret_cast<Word*>(to), value, __ATOMIC_RELEASE);
}

}  // namespace stp
