// SPDX-License-Identifier: BSD-3-Clause
// Tiling: how a Block is divided into STUs (section 8). Destination space is one linear range of
// bytes, address = Bufx * 2^Bufsize + Offset; an STU ends at every multiple of the STU size.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stp {

// log2 of the STU size that both ends derive from their announcements.
// protocol: 8.1
constexpr unsigned stu_size_log2(unsigned receiver_max_stu, unsigned sender_max_stu,
                                 unsigned receiver_bufsize) {
  return std::min({receiver_max_stu, sender_max_stu, receiver_bufsize});
}

struct Address {
  std::uint32_t bufx = 0;
  std::uint32_t offset = 0;

  friend bool operator==(const Address&, const Address&) = default;
  [[nodiscard]] constexpr std::uint64_t linear(unsigned bufsize) const {
    return (std::uint64_t{bufx} << bufsize) + offset;
  }
  static constexpr Address from_linear(std::uint64_t linear, unsigned bufsize) {
    return {static_cast<std::uint32_t>(linear >> bufsize),
            static_cast<std::uint32_t>(linear & ((std::uint64_t{1} << bufsize) - 1))};
  }
};

// Bytes of the STU that begins at linear address `at` with `remaining` bytes of the Block to go.
// protocol: 8.2
constexpr std::uint64_t stu_length(std::uint64_t at, std::uint64_t remaining, unsigned stu_log2) {
  const auto size = std::uint64_t{1} << stu_log2;
  return std::min(remaining, size - (at & (size - 1)));
}

// STUs of a Block of `length` bytes at linear address `at`; an empty Block is one empty STU.
// protocol: 8.4
constexpr std::uint64_t stu_count(std::uint64_t at, std::uint64_t length, unsigned stu_log2) {
  if (length == 0) return 1;
  return ((at + length - 1) >> stu_log2) - (at >> stu_log2) + 1;
}

}  // namespace stp
