// SPDX-License-Identifier: BSD-3-Clause
// Finds out whether unanswered requests are lost, or unseen because the peer has not been scheduled
// on a core. Asks with an RS. The RSR is made after the peer's Node has seen everything sent before
// the RS, and says whether the peer's user has read it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "stp/base/assert.h"
#include "stp/types.h"

namespace stp {

// The caller counts what leaves: `mark` is an increasing number or time.
// protocol: 10.21
class Doubt {
 public:
  // The longest time from the first question that a user who reads late delays repeats.
  static constexpr Time kLongest = 250 * kMillisecond;

  // A request stays unanswered.
  void begin(Time now) {
    if (!is_open()) since_ = now;
  }
  [[nodiscard]] bool is_open() const { return since_ != kNever; }
  // The request is answered or has been repeated.
  void is_over() {
    since_ = kNever;
    pause_ = 0;
  }
  // A question leaves, after everything counted by `mark`.
  void ask(std::uint32_t sync, std::uint64_t mark) {
    STP_ASSERT(mark >= asked_, "a later question is behind more");
    sync_ = sync;
    asked_ = mark;
    asks_ = true;
  }
  [[nodiscard]] bool is_answer(std::uint32_t sync) const { return asks_ && sync == sync_; }
  // The answer arrived. `all_read`: the peer's user has read everything that its Node passed on.
  // False: ask again after pause().
  bool answered(bool all_read, Time now) {
    STP_ASSERT(asks_, "an answer belongs to a question");
    asks_ = false;
    seen_ = asked_;
    seen_at_ = now;
    if (!all_read && is_open() && now - since_ < kLongest) return false;
    read_ = asked_;
    read_at_ = now;
    return true;
  }
  // Back-off: `first`, then doubling.
  Time pause(Time first) {
    pause_ = pause_ == 0 ? first : std::min(2 * pause_, kLongest);
    return pause_;
  }
  // Since when the peer's Node has seen what left with `mark` (kNever: not known), and since when
  // its user has read it.
  [[nodiscard]] Time seen_since(std::uint64_t mark) const {
    return mark <= seen_ ? seen_at_ : kNever;
  }
  [[nodiscard]] Time read_since(std::uint64_t mark) const {
    return mark <= read_ ? read_at_ : kNever;
  }

 private:
  std::uint32_t sync_ = 0;
  bool asks_ = false;
  std::uint64_t asked_ = 0, seen_ = 0, read_ = 0;
  Time since_ = kNever, seen_at_ = kNever, read_at_ = kNever;
  Time pause_ = 0;
};

}  // namespace stp
