// SPDX-License-Identifier: BSD-3-Clause
// How long a side waits for the other one: who polls for ever for what will never come would never
// say what it was.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

namespace stp::bench {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLimit{20};

  // What is waited for from here on.
  void begin(const char* step) {
    step_ = step;
    deadline_ = Clock::now() + kLimit;
  }
  // Nothing has come. The clock is asked so seldom that it costs a poll nothing.
  void look() {
    if (++looks_ % 1024 == 0 && Clock::now() > deadline_) fail("nothing came in 20 s");
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(std::string(step_) + ": " + why);
  }

 private:
  const char* step_ = "opening the link";
  Clock::time_point deadline_;
  unsigned looks_ = 0;
};

}  // namespace stp::bench
