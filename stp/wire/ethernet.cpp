// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/ethernet.h"

#include <cstring>

#include "stp/wire/big_endian.h"

namespace stp::wire {
namespace {

constexpr std::size_t kMacSize = sizeof(MacAddr::octets);
constexpr std::size_t kTypeAt = 2 * kMacSize;

// LLC addresses and control of an unnumbered SNAP frame, organization 0, then the EtherType.
constexpr std::array<std::uint8_t, kSnapSize> kSnap = {
    0xaa, 0xaa, 0x03, 0x00, 0x00, 0x00, kEtherType >> 8, kEtherType & 0xff};

// `rest`: what follows the length field, cut down here to the payload.
// protocol: 2.6, 2.11
Counter unwrap_snap(std::size_t length, Bytes& rest) {
  if (length < kSnapSize) return Counter::kNotStp;
  if (rest.size() < kSnapSize) return Counter::kTruncated;
  if (std::memcmp(rest.data(), kSnap.data(), kSnapSize) != 0) return Counter::kNotStp;
  if (rest.size() < length) return Counter::kTruncated;
  rest = rest.first(length).subspan(kSnapSize);
  return Counter::kNone;
}

}  // namespace

Counter unwrap_more(std::uint16_t type, LinkHeader& link, Bytes& payload) {
  if (type == kVlanEtherType) {
    if (payload.size() < kVlanSize) return Counter::kTruncated;
    link.vlan = load16(payload.data());
    type = load16(payload.data() + 2);
    payload = payload.subspan(kVlanSize);
  }
  link.snap = type <= kMax8023Length;
  if (link.snap) return unwrap_snap(type, payload);
  return type == kEtherType ? Counter::kNone : Counter::kNotStp;
}

std::size_t wrap(const LinkHeader& link, std::size_t payload_length, std::byte* out) {
  std::memcpy(out, link.dst.octets.data(), kMacSize);
  std::memcpy(out + kMacSize, link.src.octets.data(), kMacSize);
  std::byte* type = out + kTypeAt;
  if (link.vlan) {
    store16(type, kVlanEtherType);
    store16(type + 2, *link.vlan);
    type += kVlanSize;
  }
  if (link.snap) {
    store16(type, static_cast<std::uint16_t>(kSnapSize + payload_length));
    std::memcpy(type + 2, kSnap.data(), kSnapSize);
  } else {
    store16(type, kEtherType);
  }
  return link.size();
}

}  // namespace stp::wire
