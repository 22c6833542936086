// SPDX-License-Identifier: BSD-3-Clause
// The clocks of connections: when those of requests start, and the next deadline of each.
#pragma once

#include <vector>

#include "stp/base/timer_heap.h"
#include "stp/node/connection/port_table.h"
#include "stp/node/objects.h"

namespace stp {

// Starts the clock of a request at the first reading of the time after the request has left. A turn
// may be delayed between a reading and the departure of the frame; a clock started at that earlier
// reading would run out too soon.
// protocol: 10.20
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

// The next deadline of each connection, whichever of its mechanisms waits for it.
class VcTimers {
 public:
  // The silence after which the Node asks whether the peer is alive. A Port without a connection
  // has none.
  static constexpr Time kKeepAlive = 2 * kSecond;
  // What a silent peer has otherwise: kKeepAlive, and then five RS that are not answered.
  static constexpr Time kProofPatience = 4'500 * kMillisecond;
  [[nodiscard]] static bool keeps_alive(const Vc& vc) {
    return vc.state == VcState::kOpen && vc.endpoint->config.keep_alive && !vc.connectionless() &&
           !vc.waits_for_proof;
  }
  // When `vc` ends unless its peer has shown that it is there; kNever: it has, or need not.
  // protocol: 13.21
  [[nodiscard]] static Time proof_deadline(const Vc& vc) {
    const bool waits = vc.waits_for_proof && vc.state == VcState::kOpen;
    return waits ? vc.heard + kProofPatience : kNever;
  }

  // Call when a deadline of `vc` has changed. Keeps the timer when the deadline moves to later: the
  // timer fires early, finds nothing due and is set again. So a frame from the peer costs no timer
  // work.
  void update(Vc& vc);
  // `vc` has done all that was due.
  void renew(Vc& vc) { heap_.set(vc, deadline_of(vc)); }
  // `vc` has ended.
  void remove(Vc& vc) { heap_.remove(vc); }
  // The earliest of all deadlines.
  [[nodiscard]] Time next() const { return heap_.next(); }
  // The connection with that deadline. Requires one.
  [[nodiscard]] Vc& first() const { return static_cast<Vc&>(*heap_.first()); }

 private:
  [[nodiscard]] static Time deadline_of(const Vc& vc);

  TimerHeap heap_;
};

}  // namespace stp
