// SPDX-License-Identifier: BSD-3-Clause
// What all parts of one simulated run share.
#pragma once

#include <string>
#include <vector>

#include "tools/sim/clock.h"
#include "tools/sim/dice.h"
#include "tools/sim/trace.h"

namespace stp::sim {

// The failures of the run.
class Verdict {
 public:
  void fail(std::string what) {
    if (failures_.size() < kKept) failures_.push_back(std::move(what));
  }
  void require(bool holds, const char* what) {
    if (!holds) fail(what);
  }
  [[nodiscard]] bool guilty() const { return !failures_.empty(); }
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }

 private:
  static constexpr std::size_t kKept = 16;  // later failures mostly follow from the first ones
  std::vector<std::string> failures_;
};

struct Run {
  Clock clock;
  Trace trace;
  Verdict verdict;
  Dice dice;

  [[nodiscard]] Time now() const { return clock.now(); }
};

}  // namespace stp::sim
