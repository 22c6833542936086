// SPDX-License-Identifier: BSD-3-Clause
// How long to warm up and to measure, and what is said meanwhile.
#pragma once

#include <chrono>
#include <cstdint>

namespace stp::perf {

using Clock = std::chrono::steady_clock;

struct Pace {
  std::chrono::duration<double> warm_up{0.5}, measure{2};
  bool quiet = false;  // says nothing of its progress
};

// One stretch of time. Looking at the clock costs, so past() is asked once in a while only.
class Stretch {
 public:
  Stretch(std::chrono::duration<double> length, bool quiet, const char* name);
  ~Stretch();
  Stretch(const Stretch&) = delete;
  Stretch& operator=(const Stretch&) = delete;

  // `operations`: so far, for who watches.
  [[nodiscard]] bool past(std::uint64_t operations);
  [[nodiscard]] double seconds() const;  // since it began

 private:
  void say(std::uint64_t operations, Clock::time_point now);

  Clock::time_point begin_ = Clock::now(), end_, next_word_;
  const char* name_;
  bool speaks_, has_spoken_ = false;
};

}  // namespace stp::perf
