// SPDX-License-Identifier: BSD-3-Clause
// The state of a link: the worst condition that is known.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stp::port {

// The numbers appear in stpd's pages and in programs (stm_link_state in <stp/managed.h>): never
// change the meaning of one.
enum class LinkState : std::uint8_t {
  kUnknown = 0,    // not reported
  kUp = 1,         // frames go both ways
  kDown = 2,       // the interface is switched off
  kNoCarrier = 3,  // no device answers at the other end of the cable
  kGone = 4,       // the interface, or the NIC, is not there
  kNoPeer = 5,     // memif: nobody has opened the other side
  kTaken = 6,      // the interface is back, but another program owns it
  kMtu = 7,        // the longest frames do not pass
  kMac = 8,        // frames pass, but the interface's MAC address is not the one peers know
  kDuplicate = 9,  // frames pass, but another station has the link's IPv4 or MAC address
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

// Whether at least short frames pass.
constexpr bool carries_frames(LinkState state) {
  return state == LinkState::kUp || state == LinkState::kMtu || state == LinkState::kMac ||
         state == LinkState::kDuplicate;
}

}  // namespace stp::port
