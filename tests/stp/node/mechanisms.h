// SPDX-License-Identifier: BSD-3-Clause
// The mechanisms that others of a Node use, without the Node, for tests of a single one.
#pragma once

#include <vector>

#include "stp/node/connection/recovery.h"
#include "stp/node/connection/vc_endings.h"
#include "tests/stp/node/vc_fixture.h"

namespace stp::test {

struct Mechanisms {
  SeededRandom random{1};
  Common common{NodeConfig{.mac = {{2, 0, 0, 0, 0, 1}}, .max_stu = 10, .vlan = {}}, random};
  Vcs vcs;
  stp::Turns turns;
  WakeUps wake_ups{common.events};
  NodeDepartures departures;
  VcTimers timers;
  stp::Pacing pacing{{}, 10, vcs.table, common.counters};
  MappedMemory memory{common, vcs.table};
  Tidying tidying{memory, pacing};
  SendBounds bounds{{common, vcs.table, pacing, turns}};
  StateExchange states{{common, pacing, bounds, turns, departures, timers, wake_ups}};
  Recovery recovery{{common, departures, states, timers}};

  // An open connection on that Port, whose peer has announced `slots`.
  Vc& open(std::uint16_t port, std::uint32_t slots = 8) {
    auto& vc = vcs.make(port);
    vc.state.must(VcEvent::kBegun);
    vc.peer_mac = {{2, 0, 0, 0, 0, 2}};
    vc.peer_port = port;
    vc.peer_key = 1;
    vc.peer_slots = slots;
    vc.credit.reset(slots);
    return vc;
  }
  // The operations that the Node itself has sent since the last call.
  std::vector<wire::Op> sent() {
    std::vector<wire::Op> ops;
    while (const auto* const answer = common.answers.next(false)) {
      ops.push_back(answer->header.op());
      common.answers.sent(false);
    }
    return ops;
  }
  // The number of events of that kind since the last call.
  std::size_t events(Event::Kind kind) {
    const auto before = common.events.size();
    erase_if(common.events, [kind](const Event& e) { return e.kind == kind; });
    return before - common.events.size();
  }
};

}  // namespace stp::test
