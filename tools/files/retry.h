// SPDX-License-Identifier: BSD-3-Clause
// When to repeat a request, and when to give up on it.
#pragma once

#include <algorithm>

#include "tools/files/grant_window.h"

namespace stp::files {

class Retry {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(20);
  // Few enough repeats that they fit the Slots of a receiver that is busy with its disk.
  static constexpr Duration kLongest = std::chrono::seconds(4);

  Retry(Duration patience, Time now) : patience_(patience) { progress(now); }

  // Something new came: the intervals begin anew.
  void progress(Time now) {
    interval_ = kFirst;
    due_ = now + interval_;
    given_up_ = now + patience_;
  }
  [[nodiscard]] bool due(Time now) const { return now >= due_; }
  void repeated(Time now) {
    interval_ = std::min(2 * interval_, kLongest);
    due_ = now + interval_;
  }
  [[nodiscard]] bool given_up(Time now) const { return now >= given_up_; }
  // How long to wait for a message: until due, but never long, so that a signal is noticed.
  [[nodiscard]] Duration wait(Time now) const {
    return std::clamp<Duration>(due_ - now, Duration::zero(), std::chrono::milliseconds(100));
  }

 private:
  Duration patience_, interval_{};
  Time due_{}, given_up_{};
};

}  // namespace stp::files
