// SPDX-License-Identifier: BSD-3-Clause
// A limit for the time that a side waits for the other one. A side that polled for ever could not
// report what is missing.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

namespace stp::bench {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLimit{20};

  // Starts the wait for a step.
  void begin(const char* step) {
    step_ = step;
    deadline_ = Clock::now() + kLimit;
  }
  // Call after each poll without result. Reads the clock so seldom that a poll costs no more.
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
