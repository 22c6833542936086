// SPDX-License-Identifier: BSD-3-Clause
// A measurement: two processes on memif, each with one core. Both end with it.
#pragma once

#include "tests/bench/dat/plan.h"

namespace stp::bench {

enum class Api { kManaged, kDat };

// Throws the message of a side that failed.
Figures measure(Api api, const Plan& plan);

}  // namespace stp::bench
