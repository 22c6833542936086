// SPDX-License-Identifier: BSD-3-Clause
// How long to warm up and to measure, and the display of progress.
#pragma once

#include <chrono>
#include <cstdint>

namespace stp::perf {

using Clock = std::chrono::steady_clock;

struct Pace {
  std::chrono::duration<double> warm_up{0.5}, measure{2};
  bool quiet = false;  // prints no progress
};

// One stretch of time, which begins when it is constructed. Prints progress to a terminal once per
// second. past() reads the clock.
class Stretch {
 public:
  Stretch(std::chrono::duration<double> length, bool quiet, const char* name);
  ~Stretch();
  Stretch(const Stretch&) = delete;
  Stretch& operator=(const Stretch&) = delete;

  // Returns whether the time is over. `operations`: how many are done so far, for the display.
  [[nodiscard]] bool past(std::uint64_t operations);
  [[nodiscard]] double seconds() const;  // since it began

 private:
  void say(std::uint64_t operations, Clock::time_point now);

  Clock::time_point begin_ = Clock::now(), end_, next_word_;
  const char* name_;
  bool speaks_, has_spoken_ = false;
};

}  // namespace stp::perf
