// SPDX-License-Identifier: BSD-3-Clause
// The two encapsulations of profile section 2, each with or without one 802.1Q tag.
#pragma once

#include <array>
#include <cstring>
#include <optional>

#include "stp/counters.h"
#include "stp/types.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/layout.h"

namespace stp::wire {

struct LinkHeader {
  MacAddr dst;
  MacAddr src;
  std::optional<std::uint16_t> vlan;  // tag control information
  bool snap = false;                  // 802.3 + SNAP, else Ethernet II

  [[nodiscard]] std::size_t size() const {
    return kEthernetSize + (vlan ? kVlanSize : 0) + (snap ? kSnapSize : 0);
  }
};

// Whether an address can belong to a station. Reads the frame's bytes in two loads: comparing a
// MacAddr just stored, byte by byte, would double the time of parse().
// protocol: 2.9
inline bool is_station(const std::byte* mac) {
  const bool zero = (load16(mac) | load32(mac + 2)) == 0;
  const bool group = (mac[0] & std::byte{1}) != std::byte{0};
  return !zero && !group;
}

// For a frame with a tag, or in 802.3 + SNAP: removes the rest of the encapsulation. `type` is the
// value in the place of an EtherType, `payload` everything after it.
DropReason unwrap_more(std::uint16_t type, LinkHeader& link, Bytes& payload);

// Splits a frame. With 802.3 the payload has the length that the frame states; with Ethernet II it
// is the rest, including padding. Returns kNone, NotStp, Truncated or BadSource.
// protocol: 2.3
inline DropReason unwrap(Bytes frame, LinkHeader& link, Bytes& payload) {
  constexpr std::size_t kMac = sizeof link.dst.octets;
  if (frame.size() < kEthernetSize) return DropReason::kTruncated;
  std::memcpy(link.dst.octets.data(), frame.data(), kMac);
  std::memcpy(link.src.octets.data(), frame.data() + kMac, kMac);
  link.vlan.reset();
  link.snap = false;
  payload = frame.subspan(kEthernetSize);
  if (const auto type = load16(frame.data() + 2 * kMac); type != kEtherType) {
    if (const DropReason why = unwrap_more(type, link, payload); why != DropReason::kNone)
      return why;
  }
  return is_station(frame.data() + kMac) ? DropReason::kNone : DropReason::kBadSource;
}

// LLC addresses and control of an unnumbered SNAP frame, organization 0, then the EtherType.
inline constexpr std::array<std::uint8_t, kSnapSize> kSnap = {
    0xaa, 0xaa, 0x03, 0x00, 0x00, 0x00, kEtherType >> 8, kEtherType & 0xff};

// Writes the LinkHeader::size() bytes before a payload: inline, so that a frame copies nothing.
// Returns their end.
[[gnu::always_inline]] inline std::byte* wrap_inline(const MacAddr& dst, const MacAddr& src,
                                                     const std::optional<std::uint16_t>& vlan,
                                                     bool snap, std::size_t payload_length,
                                                     std::byte* out) {
  constexpr std::size_t kMac = sizeof dst.octets;
  std::memcpy(out, dst.octets.data(), kMac);
  std::memcpy(out + kMac, src.octets.data(), kMac);
  std::byte* type = out + 2 * kMac;
  if (vlan) {
    store16(type, kVlanEtherType);
    store16(type + 2, *vlan);
    type += kVlanSize;
  }
  store16(type, snap ? static_cast<std::uint16_t>(kSnapSize + payload_length) : kEtherType);
  if (snap) std::memcpy(type + 2, kSnap.data(), kSnapSize);
  return type + 2 + (snap ? kSnapSize : 0);
}

}  // namespace stp::wire
