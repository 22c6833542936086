// SPDX-License-Identifier: BSD-3-Clause
// What a user is told: headers, and that its channel has something new.
#pragma once

#include "stp/base/ring_queue.h"
#include "stp/node/objects.h"

namespace stp {

// Notifies users that their channel has something new. A user that gathers its channels gets kNews
// at once. A sleeping user gets kWake, at once or a little later so that one wake-up serves many
// headers. Checks each channel once per burst, not per frame.
// protocol: 6.17
class WakeUps {
 public:
  // The longest delay of a wake-up that is not urgent.
  static constexpr Time kDelay = 50 * kMicrosecond;

  // Adds Kind::kNews and Kind::kWake to `events`, which must outlive this.
  explicit WakeUps(RingQueue<Event>& events) : events_(events) {}

  // The channel of `vc` has a new header or state. `urgent`: the next flush() wakes a sleeping
  // user.
  void touch(Vc& vc, bool urgent = true);
  // The channel has only new room: the Node has finished requests. No other event may wake this
  // user, so a sleeping user is woken now, and one about to sleep a little later.
  void touch_room(Vc& vc);
  // Call after each burst.
  void flush(Time now) {
    if (touched_.empty() && now < wake_by_) {
      if (drowsy_.empty()) wake_by_ = kNever;  // their connections have ended
      return;
    }
    wake(now >= wake_by_, now);
  }
  // Notifies users; `all`: also those whose wake-up may be delayed.
  void wake(bool all, Time now);
  // All of them. Runs in each turn without work, and mostly nobody is to be notified.
  void wake_all(Time now) {
    if (!touched_.empty() || !drowsy_.empty()) return wake(true, now);
    wake_by_ = kNever;
  }
  // When the next delayed wake-up is due.
  [[nodiscard]] Time deadline() const { return wake_by_; }

 private:
  void enter(Vc& vc);

  RingQueue<Event>& events_;
  LinkedList<Vc, IsTouched> touched_;  // their users are to be told
  LinkedList<Vc, IsTouched> drowsy_;   // their users have been told; their wake-up may be delayed
  Time wake_by_ = kNever;
};

// Passes a header to the user of a connection.

// Puts `header` and the option or append `payload` into the Schedule Header Queue of `vc`, and has
// `wake_ups` tell its user. `length`: of the Block's data. False: no room.
bool deliver(Vc& vc, WakeUps& wake_ups, const MacAddr& from, const wire::Header& header,
             Bytes payload, NodeChannel::Place place, std::uint64_t length = 0);

}  // namespace stp
