// SPDX-License-Identifier: BSD-3-Clause
// A scenario describes a run: machines, cables, faults, and what the programs do. A profile names a
// family of scenarios; the seed selects one of them.
#pragma once

#include <functional>
#include <span>

#include "tools/sim/network.h"
#include "tools/sim/session.h"

namespace stp::sim {

// From `at` on, a host's cable is unplugged or the host itself is down.
struct Outage {
  std::size_t host = 0;
  Time at = 0, lasts = 0;
  bool reboot = false;  // the host forgets everything
};

struct Scenario {
  std::vector<HostConfig> hosts;
  unsigned nodes = 1;  // behind the address of each host
  LinkConfig link;
  Faults faults;
  std::size_t switch_buffer = std::size_t{1} << 30;
  std::vector<Outage> outages;
  Time flood_every = 0;                // between RCs with forged addresses; 0: none
  unsigned pairs = 1;                  // of hosts with a session between them
  unsigned cycles = 1;                 // sessions of a pair, one after the other
  Time pause = 2 * kMillisecond;       // at most, before a session begins
  std::function<void()> session_over;  // if set, called when both ends are gone
  bool to_one = false;                 // all sessions go to host 0
  // Session i goes from host 2i + 1 to host 2i: no two sessions share a host.
  bool apart = false;
  // Frames of senders (all hosts but 0; if apart, the odd ones) pass it; those of others take only
  // its delay. The flow of a frame is the number of its sender.
  std::optional<BottleneckConfig> bottleneck;
  Workload workload;
  // The scenario has no fault that may end a connection, so none may end.
  bool reliable = true;
  // Whether honest peers never overrun Slots. A duplicate or late operation takes a Slot like a new
  // one, and the Slots of a connectionless endpoint are not known to its peers.
  [[nodiscard]] bool slots_hold() const {
    return faults.keeps_order() && workload.kind != Workload::Kind::kConnectionless;
  }
};

struct Profile {
  const char* name;
  const char* text;
  void (*draw)(Scenario& scenario, Dice& dice);
  unsigned weight = 1;  // its frequency when all profiles are played; 0: very rare
};

std::span<const Profile> profiles();
const Profile* find_profile(const std::string& name);
Scenario draw_scenario(const Profile& profile, Dice& dice);

}  // namespace stp::sim
