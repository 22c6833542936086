// SPDX-License-Identifier: BSD-3-Clause
// What a run is made of: machines, cables, what goes wrong, and what the programs do. A profile
// names a family of scenarios; the seed draws one of it.
#pragma once

#include <functional>
#include <span>

#include "tools/sim/session.h"

namespace stp::sim {

// A host's cable is unplugged, or the host itself is down, from `at` on.
struct Outage {
  std::size_t host = 0;
  Time at = 0, lasts = 0;
  bool reboot = false;  // the host forgets everything
};

struct Scenario {
  std::vector<HostConfig> hosts;
  LinkConfig link;
  Faults faults;
  std::size_t switch_buffer = std::size_t{1} << 30;
  std::vector<Outage> outages;
  Time flood_every = 0;                // a host is asked for a connection by nobody; 0: never
  unsigned pairs = 1;                  // of hosts with a session between them
  unsigned cycles = 1;                 // sessions of a pair, one after the other
  Time pause = 2 * kMillisecond;       // at most, before a session begins
  std::function<void()> session_over;  // called, unless empty, when both ends are gone
  bool to_one = false;                 // all sessions go to host 0
  Workload workload;
  // Nothing happens that may end a connection: then none may end.
  bool reliable = true;
  // A Node can tell a duplicate or late operation from a new one only by the Slot it takes.
  // Nobody knows of those of a connectionless endpoint.
  [[nodiscard]] bool slots_hold() const {
    return faults.keeps_order() && workload.kind != Workload::Kind::kConnectionless;
  }
};

struct Profile {
  const char* name;
  const char* text;
  void (*draw)(Scenario& scenario, Dice& dice);
  unsigned weight = 1;  // how often it comes up where all profiles are played; 0: hardly ever
};

std::span<const Profile> profiles();
const Profile* find_profile(const std::string& name);
Scenario draw_scenario(const Profile& profile, Dice& dice);

}  // namespace stp::sim
