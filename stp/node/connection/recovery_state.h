// SPDX-License-Identifier: BSD-3-Clause
// What a connection's own grants and the peer's answers say about Blocks that do not arrive.
// Recovery decides by it when to request them again.
#pragma once

#include <algorithm>

#include "stp/channel/doubt.h"
#include "stp/channel/round_trip.h"
#include "stp/node/connection/slot_questions.h"

namespace stp {

class RecoveryState {
 public:
  // The last CTS left no later than `now`.
  void grant_left(Time now) { granted_at_ = now; }
  [[nodiscard]] Time granted_at() const { return granted_at_; }
  // The peer cannot send before it learns that a Slot is free here again.
  void has_no_slot(Time now) { no_slot_until_ = now + SlotQuestions::kLongestPause; }
  // The peer has answered the question `sync`. `all_read`: its user has read all that was sent.
  void answered(std::uint32_t sync, bool all_read, const RoundTrip& round_trip, Time now) {
    if (!doubt_.is_open()) return;
    check_at_ = now;
    if (doubt_.is_answer(sync))
      check_at_ += doubt_.answered(all_read, now) ? round_trip.timeout()
                                                  : doubt_.pause(shortest_timeout(round_trip));
  }
  // Nothing is to arrive any more.
  void stop() { check_at_ = kNever; }
  // Time of the next check whether granted Blocks make progress.
  [[nodiscard]] Time deadline() const { return check_at_; }

  static constexpr Time kMinDataTimeout = kMillisecond;
  static Time shortest_timeout(const RoundTrip& round_trip) {
    return std::max(4 * round_trip.smoothed(), kMinDataTimeout);
  }

 private:
  friend class Recovery;
  Time granted_at_ = 0;
  Time check_at_ = kNever;
  Time no_slot_until_ = 0;
  Doubt doubt_;  // whether the sender has seen the grants
};

}  // namespace stp
