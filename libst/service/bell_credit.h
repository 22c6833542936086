// SPDX-License-Identifier: BSD-3-Clause
// Limits how often a client may ring its doorbell without need. Each ring takes a turn of the
// polling thread, so a client that keeps ringing would keep the thread awake. The service ignores
// the bell of such a client for a while, longer each time. It still finds the client's requests
// whenever something else wakes the thread.
#pragma once

#include <algorithm>

#include "stp/base/assert.h"
#include "stp/types.h"

namespace stp::service {

class BellCredit {
 public:
  // The client rang and there was something new in one of its queues. Rings may overtake each
  // other, so some of them find an empty queue.
  void rang_with_reason() {
    left_ = std::min(left_ + kForEach, kMost);
    pause_ = kShortest;
  }
  // The client rang and all its queues were empty. Returns true if its credit is now used up: its
  // bell is ignored from now on.
  bool rang_in_vain(Time now) {
    if (silent_) return false;
    STP_ASSERT(left_ <= kMost && pause_ >= kShortest && pause_ <= kLongest,
               "a client's credit and its pause stay within their bounds");
    if (left_ > 0) --left_;
    if (left_ > 0) return false;
    silent_ = true;
    until_ = now + pause_;
    pause_ = std::min(2 * pause_, kLongest);
    return true;
  }
  [[nodiscard]] bool silent() const { return silent_; }
  // kNever: the client is not silenced.
  [[nodiscard]] Time silent_until() const { return silent_ ? until_ : kNever; }
  void listen_again() {
    silent_ = false;
    left_ = std::max(left_, kAgain);
  }

  static constexpr Time kShortest = 20 * kMillisecond, kLongest = 320 * kMillisecond;
  static constexpr unsigned kMost = 64;  // useless rings in a row before the first silence

 private:
  static constexpr unsigned kForEach = 8, kAgain = 4;

  unsigned left_ = kMost;
  bool silent_ = false;
  Time until_ = 0;
  Time pause_ = kShortest;
};

}  // namespace stp::service
