// SPDX-License-Identifier: BSD-3-Clause
// A measurement: two processes on memif, each with one core, of which neither outlives it.
#pragma once

#include "tests/bench/dat/plan.h"

namespace stp::bench {

enum class Api { kManaged, kDat };

// Throws what a side has said, if one failed.
Figures measure(Api api, const Plan& plan);

}  // namespace stp::bench
