// SPDX-License-Identifier: BSD-3-Clause
// What all parts of one simulated run share.
#pragma once

#include "tools/sim/clock.h"
#include "tools/sim/dice.h"
#include "tools/sim/trace.h"
#include "tools/sim/verdict.h"

namespace stp::sim {

struct Run {
  Clock clock;
  Trace trace;
  Verdict verdict;
  Dice dice;

  [[nodiscard]] Time now() const { return clock.now(); }
};

}  // namespace stp::sim
