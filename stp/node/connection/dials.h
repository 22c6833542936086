// SPDX-License-Identifier: BSD-3-Clause
// Sends Request_Connections: to one listener not more at a time than it answers before any is
// accepted, and none is overtaken by younger ones for long.
#pragma once

#include <map>
#include <set>
#include <tuple>

#include "stp/node/common.h"
#include "stp/node/vc_timers.h"

namespace stp {

// protocol: 5.33
class Dials {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    const PortTable& vcs;
    NodeDepartures& departures;
    VcTimers& timers;
  };
  explicit Dials(const Uses& uses);

  // Sends the RC of `vc`, or lets it wait until others are answered.
  void begin(Vc& vc, Time now);
  // Sends it again.
  void repeat(const Vc& vc) { send(vc); }
  // It is answered or given up, if it has begun: sends the next one.
  void end(Vc& vc, Time now);

 private:
  using ListenerName = std::tuple<std::uint64_t, MacAddr, std::uint32_t>;  // owner, peer, UPort
  struct Dialing {
    std::set<VcId> sent, waiting;  // in the order of their creation
    Time hurried = 0;              // when the oldest of `sent` was repeated out of turn
  };
  static ListenerName listener_of(const Vc& vc);
  void hurry(Dialing& to, Time now);
  void send(const Vc& vc);

  Uses use_;
  const std::size_t most_;                   // unanswered at a time, of one user to one listener
  std::map<ListenerName, Dialing> dialing_;  // entries have unanswered RCs
};

}  // namespace stp
