// SPDX-License-Identifier: BSD-3-Clause
// What copying memory costs: no link that copies is faster.
#pragma once

#include "tools/perf/pace.h"
#include "tools/perf/result.h"

namespace stp::perf {

// `working_set`: bytes that the copies go through before they come back to the same place, at least
// `size`; on each side.
Result measure_copy(std::uint64_t size, std::uint64_t working_set, const Pace& pace,
                    const UsageMeter& usage);

}  // namespace stp::perf
