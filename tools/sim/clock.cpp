// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/clock.h"

#include <algorithm>

namespace stp::sim {

void Clock::at(Time when, Action action) {
  heap_.push_back({std::max(when, now_), serial_++, std::move(action)});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

bool Clock::step() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), later);
  const auto entry = std::move(heap_.back());
  heap_.pop_back();
  now_ = entry.when;
  ++steps_;
  entry.action();
  return true;
}

}  // namespace stp::sim
