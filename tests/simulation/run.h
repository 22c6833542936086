// SPDX-License-Identifier: BSD-3-Clause
// What every part of one simulated run shares.
#pragma once

#include "tests/simulation/clock.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/trace.h"
#include "tests/simulation/verdict.h"

namespace stp::sim {

struct Run {
  Clock clock;
  Trace trace;
  Verdict verdict;
  Dice dice;

  [[nodiscard]] Time now() const { return clock.now(); }
};

}  // namespace stp::sim
