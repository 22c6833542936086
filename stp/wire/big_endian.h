// SPDX-License-Identifier: BSD-3-Clause
// Big-endian integers of the link, at any alignment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stp::wire {

// Converts both ways.
// protocol: 2.1
constexpr std::uint16_t big_endian(std::uint16_t v) {
  return std::endian::native == std::endian::big ? v : __builtin_bswap16(v);
}
constexpr std::uint32_t big_endian(std::uint32_t v) {
  return std::endian::native == std::endian::big ? v : __builtin_bswap32(v);
}

inline std::uint16_t load16(const std::byte* wire) {
  std::uint16_t v;
  std::memcpy(&v, wire, sizeof v);
  return big_endian(v);
}
inline std::uint32_t load32(const std::byte* wire) {
  std::uint32_t v;
  std::memcpy(&v, wire, sizeof v);
  return big_endian(v);
}

inline void store16(std::byte* wire, std::uint16_t v) {
  v = big_endian(v);
  std::memcpy(wire, &v, sizeof v);
}
inline void store32(std::byte* wire, std::uint32_t v) {
  v = big_endian(v);
  std::memcpy(wire, &v, sizeof v);
}

inline std::uint64_t load64(const std::byte* p) {
  return std::uint64_t{load32(p)} << 32 | load32(p + 4);
}
inline void store64(std::byte* p, std::uint64_t v) {
  store32(p, static_cast<std::uint32_t>(v >> 32));
  store32(p + 4, static_cast<std::uint32_t>(v));
}

}  // namespace stp::wire
