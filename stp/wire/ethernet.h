// SPDX-License-Identifier: BSD-3-Clause
// The two encapsulations of profile section 2, each with or without one 802.1Q tag.
#pragma once

#include <optional>

#include "stp/counters.h"
#include "stp/types.h"
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

// Takes a frame apart. With 802.3 the payload has the length that the frame states; with
// Ethernet II it is all there is, padding included. Returns kNone, NotStp, Truncated or BadSource.
Counter unwrap(Bytes frame, LinkHeader& link, Bytes& payload);

// Writes the link.size() bytes that go before a payload, and returns how many they are.
std::size_t wrap(const LinkHeader& link, std::size_t payload_length, std::byte* out);

}  // namespace stp::wire
