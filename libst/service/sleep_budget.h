// SPDX-License-Identifier: BSD-3-Clause
// How often a thread may look at something that cannot wake it, without using more than a small
// share of a core. What a look costs is mostly the kernel's timer and differs between machines by a
// factor of ten, so it is measured.
#pragma once

#include <time.h>

#include <algorithm>

#include "stp/types.h"

namespace stp::service {

class SleepBudget {
 public:
  // `shortest`, `longest`: bounds of what pause() says, whatever a look costs.
  SleepBudget(Time shortest, Time longest)
      : shortest_(shortest), longest_(longest), pause_(longest) {}

  // It was busy: what it spends now is not for looking.
  void restart() { looks_ = 0; }
  // By the thread itself, each time that it has slept, looked, and found nothing.
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
  static constexpr unsigned kMeasured = 64;   // asking for the time spent costs as well: seldom
  static constexpr Time kLooksPerShare = 60;  // 1.7 % of a core: a daemon has other threads, too

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
