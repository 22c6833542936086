// SPDX-License-Identifier: BSD-3-Clause
// Users who are to be told that their channel has something new: who gathers its channels of news
// at once, who sleeps by a wake-up, now or a little later so that one serves for many headers. Each
// channel is looked at once per burst, not per frame.
// protocol: 6.17
#pragma once

#include <deque>

#include "stp/node/objects.h"

namespace stp {

class WakeUps {
 public:
  // What is not urgent is told no later than this.
  static constexpr Time kDelay = 50 * kMicrosecond;

  // `events` get Kind::kNews and Kind::kWake, and outlive this.
  explicit WakeUps(std::deque<Event>& events) : events_(events) {}

  // The channel of `vc` has a header or another state for its user. `urgent`: who sleeps is woken
  // with the next flush().
  void touch(Vc& vc, bool urgent = true);
  // It has nothing but room: requests of its user are done with. Nothing else may happen that would
  // wake it: who sleeps is woken now, who is about to a little later.
  void touch_room(Vc& vc);
  // After each burst.
  void flush(Time now) {
    if (touched_.empty() && now < wake_by_) {
      if (drowsy_.empty()) wake_by_ = kNever;  // those who were have gone
      return;
    }
    wake(now >= wake_by_, now);
  }
  // Tells those who are to be told; `all`: also who could wait a little longer.
  void wake(bool all, Time now);
  // Then somebody is to be woken who could wait.
  [[nodiscard]] Time deadline() const { return wake_by_; }

 private:
  void enter(Vc& vc);

  std::deque<Event>& events_;
  LinkedList<Vc, IsTouched> touched_;  // whose users are to be told what is new
  LinkedList<Vc, IsTouched> drowsy_;   // who have been told, and may be woken a little later
  Time wake_by_ = kNever;
};

}  // namespace stp
