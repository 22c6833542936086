// SPDX-License-Identifier: BSD-3-Clause
// The client side of a test: connects to a server and measures.
#pragma once

#include <memory>

#include "tools/perf/pace.h"
#include "tools/perf/result.h"
#include "tools/perf/room.h"

namespace stp::perf {

// Runs one test and returns its result. A latency test fills `latency`, and the result refers to
// it. Errors are exceptions.
Result run_client(const Setup& setup, const std::string& peer, const Plan& plan, const Pace& pace,
                  const UsageMeter& usage, Histogram& latency);

}  // namespace stp::perf
