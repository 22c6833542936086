// SPDX-License-Identifier: BSD-3-Clause
// How long a thread that fills in for a program stays away while the program itself comes. Each
// look takes the program's core for some microseconds, so whoever keeps coming is looked for ever
// less often; the price is that the thread is back so much later when the program stops without a
// word.
#pragma once

#include <algorithm>

#include "stp/types.h"

namespace stp::service {

class Absence {
 public:
  static constexpr Time kLongest = 2 * kMillisecond;
  static constexpr Time kSooner = 5;

  explicit Absence(Time shortest) : shortest_(shortest), next_(shortest) {}

  // The program has come since the last look: so long until the next.
  Time prolong() {
    auto const now = next_;
    next_ = std::min(next_ * 2, kLongest);
    return now;
  }
  // It has not. `soon`: it leaves to the thread what comes, and is looked for sooner.
  void end(bool soon = false) { next_ = soon ? shortest_ / kSooner : shortest_; }

 private:
  const Time shortest_;
  Time next_;
};

}  // namespace stp::service
