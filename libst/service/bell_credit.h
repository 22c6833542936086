// SPDX-License-Identifier: BSD-3-Clause
// How often a client may ring for nothing. Each ring takes a turn of the thread that polls, and a
// client that rings all the time would keep it awake: such a one is not listened to for a while,
// each time for longer. What it has in its queues is still found whenever somebody else wakes the
// thread.
#pragma once

#include <algorithm>

#include "stp/base/assert.h"
#include "stp/types.h"

namespace stp::service {

class BellCredit {
 public:
  // It rang, and something new stood in a queue of its own. Rings may overtake each other, so that
  // some of them find nothing left.
  void rang_with_reason() {
    left_ = std::min(left_ + kForEach, kMost);
    pause_ = kShortest;
  }
  // It rang, and there was nothing. True: it has used up what it had, and is silent from now on.
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
  // kNever: it is not silent.
  [[nodiscard]] Time silent_until() const { return silent_ ? until_ : kNever; }
  void listen_again() {
    silent_ = false;
    left_ = std::max(left_, kAgain);
  }

  static constexpr Time kShortest = 20 * kMillisecond, kLongest = 320 * kMillisecond;
  static constexpr unsigned kMost = 64;  // in a row, before it is silenced the first time

 private:
  static constexpr unsigned kForEach = 8, kAgain = 4;

  unsigned left_ = kMost;
  bool silent_ = false;
  Time until_ = 0;
  Time pause_ = kShortest;
};

}  // namespace stp::service
