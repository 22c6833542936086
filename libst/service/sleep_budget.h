// SPDX-License-Identifier: BSD-3-Clause
// Limits how often a thread polls for something that cannot wake it, to a small share of a core.
// The cost of a look is mostly the kernel's timer and differs between machines by a factor of ten,
// so the class measures it.
#pragma once

#include <time.h>

#include <algorithm>

#include "stp/types.h"

namespace stp::service {

class SleepBudget {
 public:
  // `shortest`, `longest`: bounds of pause(), whatever a look costs.
  SleepBudget(Time shortest, Time longest)
      : shortest_(shortest), longest_(longest), pause_(longest) {}

  // The thread had work: discards the current measurement.
  void restart() { looks_ = 0; }
  // The thread calls this each time it has slept, looked and found nothing.
  void looked() {
    if (looks_ == 0) spent_before_ = spent();
    if (looks_++ < kMeasured) return;
    set_cost((spent() - spent_before_) / kMeasured);
    looks_ = 0;
  }
  void set_cost(Time of_one_look) {
    pause_ = std::clamp(of_one_look * kLooksPerShare, shortest_, longest_);
  }
  [[nodiscard]] Time pause() const { return pause_; }

 private:
  static constexpr unsigned kMeasured = 64;   // looks per measurement: reading CPU time costs, too
  static constexpr Time kLooksPerShare = 60;  // 1/60, or 1.7 %, of a core

  static Time spent() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<Time>(time.tv_sec) * kSecond + static_cast<Time>(time.tv_nsec);
  }

  const Time shortest_, longest_;
  Time pause_;
  Time spent_before_ = 0;
  unsigned looks_ = 0;
};

}  // namespace stp::service
