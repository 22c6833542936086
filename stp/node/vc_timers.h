// SPDX-License-Identifier: BSD-3-Clause
// The next deadline of each connection, whichever of its mechanisms waits for it.
#pragma once

#include "stp/base/timer_heap.h"
#include "stp/node/objects.h"

namespace stp {

class VcTimers {
 public:
  // The silence after which the Node asks whether the peer is alive.
  static constexpr Time kKeepAlive = 2 * kSecond;
  [[nodiscard]] static bool keeps_alive(const Vc& vc) {
    return vc.state == VcState::kOpen && vc.endpoint->config.keep_alive;
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
