// SPDX-License-Identifier: BSD-3-Clause
// Interprets silence on a connection that waits for DATA: either STUs were lost, or the sender has
// not been scheduled on a core. Only a few Blocks are requested again until an answer shows which.
#pragma once

#include <algorithm>
#include <cstdint>

#include "stp/base/assert.h"
#include "stp/types.h"

namespace stp {

// The largest value of the last second or two.
class RecentMaximum {
 public:
  void note(Time value, Time now) {
    if (now - since_ >= kSecond) {
      before_ = now - since_ >= 2 * kSecond ? 0 : present_;
      present_ = 0;
      since_ = now;
    }
    present_ = std::max(present_, value);
  }
  [[nodiscard]] Time longest() const { return std::max(before_, present_); }

 private:
  Time since_ = 0, before_ = 0, present_ = 0;
};

// Grants have serial numbers. "Asked for" means that the Block's CTS was repeated.
// protocol: 10.13, 10.14
class Silence {
 public:
  // The number of Blocks to request again when the silence has lasted too long.
  [[nodiscard]] unsigned asks() const { return asks_; }
  // Their CTS were repeated; `newest` is the latest grant.
  void asked(std::uint64_t newest) {
    STP_ASSERT(newest >= asked_until_, "serial numbers of grants count up");
    asked_until_ = newest;
    lasted_ = 0;
  }
  // An STU of the Block with the grant `serial` arrived after a silence of `pause`.
  void broken(std::uint64_t serial, bool asked_for, Time pause, Time now) {
    if (asked_until_ != 0) return answered(serial, asked_for, pause, now);
    if (!asked_for) pauses_.note(pause, now);
  }
  // The longest silence of the last second or two in which nothing was lost.
  [[nodiscard]] Time longest_pause() const { return pauses_.longest(); }

 private:
  static constexpr unsigned kMostAsked = 64;

  // A Block that was granted before the repeats but not asked for again shows that all of them were
  // on their way: a sender keeps the order of the CTS.
  void answered(std::uint64_t serial, bool asked_for, Time pause, Time now) {
    if (lasted_ == 0) {
      lasted_ = std::max<Time>(pause, 1);
      if (asked_for) asks_ = std::min(2 * asks_, kMostAsked);
    }
    STP_ASSERT(asks_ >= 1 && asks_ <= kMostAsked, "one Block at least is asked for, and not all");
    if (asked_for) return;
    if (serial <= asked_until_) pauses_.note(lasted_, now);
    asks_ = 1;
    asked_until_ = 0;
  }

  RecentMaximum pauses_;
  unsigned asks_ = 1;
  std::uint64_t asked_until_ = 0;  // 0: no question is open
  Time lasted_ = 0;                // 0: the silence lasts
};

}  // namespace stp
