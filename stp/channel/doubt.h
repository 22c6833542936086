// SPDX-License-Identifier: BSD-3-Clause
// Whether what stays unanswered is lost, or lies unseen where nobody has had his turn on a core: an
// RS asks. Its RSR was made after the peer's Node had seen all that left before it, and says
// whether the peer's user has read it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "stp/base/assert.h"
#include "stp/types.h"

namespace stp {

// What leaves is counted by the caller: `mark` is a number, or a time, that grows.
// protocol: 10.21
class Doubt {
 public:
  // A user who reads late holds up repeats for so long, from the first question on.
  static constexpr Time kLongest = 250 * kMillisecond;

  // Something stays unanswered.
  void begin(Time now) {
    if (!is_open()) since_ = now;
  }
  [[nodiscard]] bool is_open() const { return since_ != kNever; }
  // It is answered, or has been sent again.
  void is_over() {
    since_ = kNever;
    pause_ = 0;
  }
  // A question leaves, behind all that `mark` counts.
  void ask(std::uint32_t sync, std::uint64_t mark) {
    STP_ASSERT(mark >= asked_, "a later question is behind more");
    sync_ = sync;
    asked_ = mark;
    asks_ = true;
  }
  [[nodiscard]] bool is_answer(std::uint32_t sync) const { return asks_ && sync == sync_; }
  // Its answer has come. `all_read`: the peer's user has read all that its Node gave it. False: ask
  // again after pause().
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
  // `first`, then ever longer.
  Time pause(Time first) {
    pause_ = pause_ == 0 ? first : std::min(2 * pause_, kLongest);
    return pause_;
  }
  // What left as number `mark` has been seen by the peer's Node (kNever: not as far as is known),
  // and by its user, since then.
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
