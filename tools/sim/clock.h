// SPDX-License-Identifier: BSD-3-Clause
// Virtual time: runs actions in the order of their times. Actions with equal times run in the order
// in which they were added.
#pragma once

#include <functional>
#include <vector>

#include "stp/types.h"

namespace stp::sim {

class Clock {
 public:
  using Action = std::function<void()>;

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  void at(Time when, Action action);
  void after(Time span, Action action) { at(now_ + span, std::move(action)); }
  // Runs the next action. Returns false if there is none.
  bool step();

 private:
  struct Entry {
    Time when;
    std::uint64_t serial;
    Action action;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.when != b.when ? a.when > b.when : a.serial > b.serial;
  }

  Time now_ = kSecond;
  std::uint64_t serial_ = 0, steps_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace stp::sim
