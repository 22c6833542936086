// SPDX-License-Identifier: BSD-3-Clause
// Why a link cannot be opened yet: what it needs is not there, and may come.
#pragma once

#include <optional>
#include <string>

#include "dpdk_port/link/interface_watch.h"
#include "dpdk_port/link/link.h"
#include "dpdk_port/link/link_state.h"

namespace stp::port {

struct Absence {
  LinkState state;      // kGone or kDown
  std::string trouble;  // with the remedy
};

// Of an interface. nullopt: it is there, and up.
inline std::optional<Absence> absence_of(const std::string& interface,
                                         const InterfaceWatch::Facts& facts) {
  if (facts.index == 0)
    return Absence{LinkState::kGone, "there is no interface " + interface +
                                         ": the link waits for it ('ip link' lists them)"};
  if (!facts.up)
    return Absence{LinkState::kDown, "the interface is down: ip link set " + interface + " up"};
  return std::nullopt;
}

inline std::optional<Absence> absence_of(const std::string& interface) {
  return absence_of(interface, InterfaceWatch(interface).facts());
}

// Of a link: the interface of iface: with driver=af_packet, which must be up; the address or
// interface of udp:; the folder for the socket of a memif: server. nullopt: all is there, or links
// of this kind do not wait.
std::optional<Absence> absence_of(const LinkConfig& link);

// Why the link's address is none that it can have on this host, now or later; "": it can. What the
// text of the link alone says is checked by parse_link().
std::string unfit_here(const LinkConfig& link);

}  // namespace stp::port
