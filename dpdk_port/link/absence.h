// SPDX-License-Identifier: BSD-3-Clause
// Why an interface cannot be a link yet: it is not there, or it is down.
#pragma once

#include <optional>
#include <string>

#include "dpdk_port/link/interface_watch.h"
#include "dpdk_port/link/link_state.h"

namespace stp::port {

struct Absence {
  LinkState state;      // kGone or kDown
  std::string trouble;  // with the remedy
};

// nullopt: the interface is there, and up.
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

}  // namespace stp::port
