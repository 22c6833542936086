// SPDX-License-Identifier: BSD-3-Clause
// Starts the clock of a request at the first reading of the time after the request has left. A turn
// may be delayed between a reading and the departure of the frame; a clock started at that earlier
// reading would run out too soon.
// protocol: 10.20
#pragma once

#include <vector>

#include "stp/node/connection/port_table.h"

namespace stp {

class NodeDepartures {
 public:
  enum Clock : std::uint8_t { kHandshakeClock = 1, kAskClock = 2, kGrantClock = 4 };

  // A request of the Node's own with this clock is in the queue of answers.
  void leaves(Vc& vc, Clock clock) {
    if (vc.departing.clocks_ == 0) leaving_.push_back(vc.id);
    vc.departing.clocks_ |= clock;
  }
  // The queue of answers is empty: all these requests have left.
  void have_left() {
    if (leaving_.empty()) return;
    left_.insert(left_.end(), leaving_.begin(), leaving_.end());
    leaving_.clear();
  }
  // Call at the first reading of the time after have_left().
  void start_clocks(const PortTable& vcs, Time now) {
    if (!left_.empty()) start(vcs, now);
  }

 private:
  void start(const PortTable& vcs, Time now);

  std::vector<VcId> leaving_, left_;
};

}  // namespace stp
