// SPDX-License-Identifier: BSD-3-Clause
// Measures bare frames there and back, or one way: what a link can do without the protocol. Errors
// are exceptions.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "tools/perf/measure.h"

namespace stp::perf {

// `size`: bytes after the Ethernet header.
Result measure_raw_latency(const std::string& link, std::uint64_t size, const Pace& pace,
                           const UsageMeter& usage, Histogram& latency);
// Counts the frames that the other side has received, not those that were sent.
Result measure_raw_stream(const std::string& link, std::uint64_t size, const Pace& pace,
                          const UsageMeter& usage);
// Serves both tests until `stop` is set.
void run_raw_server(const std::string& link, const std::function<void()>& ready,
                    const std::atomic<bool>& stop);

}  // namespace stp::perf
