// SPDX-License-Identifier: BSD-3-Clause
// The commands of stp-perf, one function each; raw/raw.h has that for bare frames. Errors are
// exceptions.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "tools/perf/pace.h"
#include "tools/perf/result.h"
#include "tools/perf/room.h"

namespace stp::perf {

// Connects to a server, runs one test and returns its result. A latency test fills `latency`, and
// the result refers to it.
Result run_client(const Setup& setup, const std::string& peer, const Plan& plan, const Pace& pace,
                  const UsageMeter& usage, Histogram& latency);

struct Serving {
  Setup setup;
  std::string port = ":3000";
  bool once = false;                               // ends after the first client
  std::function<void()> listening;                 // called when clients can connect
  std::function<void(const std::string&)> mishap;  // called when a client's test has failed
};

// Does what clients ask for, one client at a time. Runs until `stop` is set, or with `once` until
// the first client has gone.
void run_server(const Serving& serving, const UsageMeter& usage, const std::atomic<bool>& stop);

// Measures the cost of copying memory: no link that copies can be faster. `working_set`: bytes on
// each side that the copies cover before they return to the same place; at least `size`.
Result measure_copy(std::uint64_t size, std::uint64_t working_set, const Pace& pace,
                    const UsageMeter& usage);

}  // namespace stp::perf
