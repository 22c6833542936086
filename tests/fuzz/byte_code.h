// SPDX-License-Identifier: BSD-3-Clause
// Reads a fuzzer's input as a program: each step takes the bytes it needs. Missing bytes at the end
// read as 0.
#pragma once

#include <array>
#include <cstdint>

#include "stp/types.h"

namespace stp::fuzz {

class ByteCode {
 public:
  explicit ByteCode(Bytes bytes) : rest_(bytes) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }
  std::uint8_t u8() {
    const auto byte = take(1);
    return byte.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(byte.front());
  }
  std::uint16_t u16() { return static_cast<std::uint16_t>(u8() << 8 | u8()); }
  std::uint32_t u32() { return std::uint32_t{u16()} << 16 | u16(); }
  std::uint64_t u64() { return std::uint64_t{u32()} << 32 | u32(); }
  // 0 .. count-1, from one byte.
  std::uint32_t below(std::uint32_t count) { return u8() % count; }
  bool chance(unsigned of_256) { return u8() < of_256; }
  // Takes up to `count` bytes unchanged.
  Bytes take(std::size_t count) {
    const auto taken = rest_.first(count < rest_.size() ? count : rest_.size());
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  // Mostly small numbers, sometimes limits of 16 and 32 bits, occasionally any number.
  std::uint32_t number() {
    static constexpr std::array<std::uint32_t, 12> kEdges{
        0xffffffff, 0xfffffffe, 0x80000000, 0x7fffffff, 0x10000, 0xffff,
        0x8000,     1024,       1023,       256,        255,     31};
    const auto kind = u8();
    if (kind < 160) return kind;
    if (kind < 208) return kEdges[kind % kEdges.size()];
    return u32();
  }

 private:
  Bytes rest_;
};

}  // namespace stp::fuzz
