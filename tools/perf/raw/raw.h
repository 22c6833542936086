// SPDX-License-Identifier: BSD-3-Clause
// Bare frames there and back, or one way: what a link does without a protocol.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "tools/perf/pace.h"
#include "tools/perf/result.h"

namespace stp::perf {

// `size`: bytes behind the Ethernet header.
Result measure_raw_latency(const std::string& link, std::uint64_t size, const Pace& pace,
                           const UsageMeter& usage, Histogram& latency);
// As many as the other side has seen arrive, not as many as were sent.
Result measure_raw_stream(const std::string& link, std::uint64_t size, const Pace& pace,
                          const UsageMeter& usage);
// Answers both, until `stop`.
void run_raw_server(const std::string& link, const std::function<void()>& ready,
                    const std::atomic<bool>& stop);

}  // namespace stp::perf
