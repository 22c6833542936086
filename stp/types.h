// SPDX-License-Identifier: BSD-3-Clause
// The few words every part of stp/ shares: time, MAC addresses, byte spans.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace stp {

// Nanoseconds since an arbitrary start. stp/ never reads a clock: the caller passes the time in.
using Time = std::uint64_t;
inline constexpr Time kMicrosecond = 1'000;
inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000'000'000;
inline constexpr Time kNever = ~Time{0};

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

struct MacAddr {
  std::array<std::uint8_t, 6> octets{};

  friend constexpr auto operator<=>(const MacAddr&, const MacAddr&) = default;
  // Runs once per frame, on an address just stored: reads it in pieces of 4 and 2 bytes, as it was
  // written, because a longer load would wait for all stores before it.
  friend constexpr bool operator==(const MacAddr& a, const MacAddr& b) {
    if (std::is_constant_evaluated()) return a.octets == b.octets;
    std::uint32_t a4, b4;
    std::uint16_t a2, b2;
    std::memcpy(&a4, a.octets.data(), 4);
    std::memcpy(&b4, b.octets.data(), 4);
    std::memcpy(&a2, a.octets.data() + 4, 2);
    std::memcpy(&b2, b.octets.data() + 4, 2);
    return ((a4 ^ b4) | static_cast<std::uint32_t>(a2 ^ b2)) == 0;
  }

  // The group bit: set in multicast and broadcast addresses, never in a station's own.
  [[nodiscard]] constexpr bool is_group() const { return (octets[0] & 1) != 0; }
  [[nodiscard]] constexpr bool is_zero() const { return *this == MacAddr{}; }

  // 02:00:00:00:00:01 <-> 0x020000000001: the form in st_macaddr_t and in hash keys.
  [[nodiscard]] constexpr std::uint64_t to_u64() const {
    std::uint64_t v = 0;
    for (auto o : octets) v = v << 8 | o;
    return v;
  }
  static constexpr MacAddr from_u64(std::uint64_t v) {
    MacAddr m;
    for (std::size_t i = 6; i-- > 0; v >>= 8) m.octets[i] = static_cast<std::uint8_t>(v);
    return m;
  }
};

// The random source for Keys. The data plane passes the system's source, the simulation a seeded
// one.
class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint32_t next() = 0;
};

}  // namespace stp
