// SPDX-License-Identifier: BSD-3-Clause
// Computes how long the background thread stays away from a Service that the program drives itself.
// Each look takes the program's core for some microseconds, so the interval doubles for as long as
// the program keeps coming. The cost: the thread returns that much later when the program stops
// driving the Service without calling it.
#pragma once

#include <algorithm>

#include "stp/types.h"

namespace stp::service {

class Absence {
 public:
  static constexpr Time kLongest = 2 * kMillisecond;
  static constexpr Time kSooner = 5;  // divides the shortest interval

  explicit Absence(Time shortest) : shortest_(shortest), next_(shortest) {}

  // Call if the program has driven the Service since the last look. Returns the time until the next
  // look.
  Time prolong() {
    const auto now = next_;
    next_ = std::min(next_ * 2, kLongest);
    return now;
  }
  // Call if the program has not driven the Service since the last look. `soon`: it leaves incoming
  // frames to the thread, so the next interval is shorter.
  void end(bool soon = false) { next_ = soon ? shortest_ / kSooner : shortest_; }

 private:
  const Time shortest_;
  Time next_;
};

}  // namespace stp::service
