// SPDX-License-Identifier: BSD-3-Clause
// The largest value of the last second or two.
#pragma once

#include <algorithm>

#include "stp/types.h"

namespace stp {

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

}  // namespace stp
