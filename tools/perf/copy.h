// SPDX-License-Identifier: BSD-3-Clause
// Measures the cost of copying memory: no link that copies can be faster.
#pragma once

#include "tools/perf/pace.h"
#include "tools/perf/result.h"

namespace stp::perf {

// `working_set`: bytes on each side that the copies cover before they return to the same place; at
// least `size`.
Result measure_copy(std::uint64_t size, std::uint64_t working_set, const Pace& pace,
                    const UsageMeter& usage);

}  // namespace stp::perf
