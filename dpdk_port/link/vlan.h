// SPDX-License-Identifier: BSD-3-Clause
// Which received frames belong to a link: those of its VLAN (IEEE 802.1Q).
// protocol: 2.12
#pragma once

#include <cstdint>
#include <optional>

#include "stp/types.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/layout.h"

namespace stp::port {

inline constexpr std::uint16_t kServiceTagEtherType = 0x88a8;  // IEEE 802.1ad
inline constexpr std::uint16_t kVlanIdMask = 0x0fff;           // the rest is priority

// The VLAN of a frame; 0: none. A tag with the identifier 0 only carries a priority. `removed`: the
// tag control information that the driver has taken out of the frame. nullopt: the frame ends
// within its tag, or has a tag of a provider, which no link has.
inline std::optional<std::uint16_t> vlan_of(Bytes frame, std::optional<std::uint16_t> removed) {
  if (removed) return static_cast<std::uint16_t>(*removed & kVlanIdMask);
  constexpr std::size_t kTypeAt = wire::kEthernetSize - 2;
  if (frame.size() < wire::kEthernetSize) return 0;  // too short for any protocol
  const std::uint16_t type = wire::load16(&frame[kTypeAt]);
  if (type == kServiceTagEtherType) return std::nullopt;
  if (type != wire::kVlanEtherType) return 0;
  if (frame.size() < wire::kEthernetSize + wire::kVlanSize) return std::nullopt;
  return static_cast<std::uint16_t>(wire::load16(&frame[kTypeAt + 2]) & kVlanIdMask);
}

// `own`: the VLAN of the link, if it has one.
inline bool is_of_vlan(Bytes frame, std::optional<std::uint16_t> removed,
                       std::optional<std::uint16_t> own) {
  return vlan_of(frame, removed) == own.value_or(0);
}

}  // namespace stp::port
