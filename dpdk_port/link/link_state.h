// SPDX-License-Identifier: BSD-3-Clause
// What a link can do now: one state, the worst that is known.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stp::port {

// The numbers go through stpd's pages and into programs (stm_link_state in <stp/managed.h>): none
// is ever used for anything else.
enum class LinkState : std::uint8_t {
  kUnknown = 0,    // nobody tells
  kUp = 1,         // frames go both ways
  kDown = 2,       // the interface is switched off
  kNoCarrier = 3,  // nothing that answers is at the other end of the cable
  kGone = 4,       // the interface, or the NIC, is not there
  kNoPeer = 5,     // memif: nobody has opened the other side
  kTaken = 6,      // the interface is back, and another program has it
  kMtu = 7,        // frames go, but not the longest
  kMac = 8,        // frames go, but the interface has another MAC address than peers were told
  kDuplicate = 9,  // frames go, but another station has the link's IPv4 address
};

struct LinkStateName {
  LinkState state;
  std::string_view name;
};
inline constexpr std::array kLinkStates{
    LinkStateName{LinkState::kUnknown, "unknown"},
    LinkStateName{LinkState::kUp, "up"},
    LinkStateName{LinkState::kDown, "down"},
    LinkStateName{LinkState::kNoCarrier, "no carrier"},
    LinkStateName{LinkState::kGone, "gone"},
    LinkStateName{LinkState::kNoPeer, "no peer"},
    LinkStateName{LinkState::kTaken, "taken"},
    LinkStateName{LinkState::kMtu, "mtu mismatch"},
    LinkStateName{LinkState::kMac, "mac changed"},
    LinkStateName{LinkState::kDuplicate, "duplicate address"},
};

constexpr std::string_view name_of(LinkState state) {
  for (const LinkStateName& each : kLinkStates) {
    if (each.state == state) return each.name;
  }
  return kLinkStates.front().name;
}

// At least the short frames go.
constexpr bool carries_frames(LinkState state) {
  return state == LinkState::kUp || state == LinkState::kMtu || state == LinkState::kMac ||
         state == LinkState::kDuplicate;
}

}  // namespace stp::port
