// SPDX-License-Identifier: BSD-3-Clause
// Clocks of requests begin when these have left, with the first look at the time after that: a turn
// may be held up between a look at the time and the frame's departure, and a clock that had begun
// with that look would be over too soon.
// protocol: 10.20
#pragma once

#include <vector>

#include "stp/node/connection/port_table.h"

namespace stp {

class NodeDepartures {
 public:
  enum Clock : std::uint8_t { kHandshakeClock = 1, kAskClock = 2, kGrantClock = 4 };

  // A request of the Node's own that `clock` is of stands in the queue of answers.
  void leaves(Vc& vc, Clock clock) {
    if (vc.departing.clocks_ == 0) leaving_.push_back(vc.id);
    vc.departing.clocks_ |= clock;
  }
  // The queue of answers is empty: all of them are on their way.
  void have_left() {
    if (leaving_.empty()) return;
    left_.insert(left_.end(), leaving_.begin(), leaving_.end());
    leaving_.clear();
  }
  // The first look at the time since then.
  void start_clocks(const PortTable& vcs, Time now) {
    if (!left_.empty()) start(vcs, now);
  }

 private:
  void start(const PortTable& vcs, Time now);

  std::vector<VcId> leaving_, left_;
};

}  // namespace stp
