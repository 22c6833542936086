// SPDX-License-Identifier: BSD-3-Clause
// The commands of stp-perf, one function each, and the command line that chooses one. Errors are
// exceptions.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "tools/perf/measure.h"
#include "tools/perf/plan.h"
#include "tools/perf/room.h"

namespace stp::perf {

enum class Command { kServer, kLatency, kBandwidth, kRate, kRaw, kMemcpy };

// The command line of stp-perf.
struct Options {
  Command command = Command::kServer;
  Setup setup;
  std::string peer;  // "": a server inside this program
  std::string port = ":3000";
  Plan plan;
  Pace pace;
  bool once = false;
  bool serve = false;             // raw: the answering side
  bool one_way = false;           // raw
  std::uint64_t working_set = 0;  // memcpy
  bool json = false;
  std::optional<unsigned> cpu;
};

// nullopt: the program ends with `exit_status`.
std::optional<Options> parse_options(int argc, char** argv, int& exit_status);

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
  const Plan* plan = nullptr;                      // what the first client will ask for, if known
  // How long a client waits for its turn until it is told why it does not come, and has to go: not
  // as long as it would wait by itself.
  std::chrono::milliseconds turn{8'000};
};

// Does what clients ask for, one client at a time. Runs until `stop` is set, or with `once` until
// the first client has gone.
void run_server(const Serving& serving, const UsageMeter& usage, const std::atomic<bool>& stop);

// Measures the cost of copying memory: no link that copies can be faster. `working_set`: bytes on
// each side that the copies cover before they return to the same place; at least `size`.
Result measure_copy(std::uint64_t size, std::uint64_t working_set, const Pace& pace,
                    const UsageMeter& usage);
// Returns the bytes a second that a short measurement gives for copies of what the plan moves; 0
// for tests that move little.
std::uint64_t copy_rate(const Plan& plan, const UsageMeter& usage);

// raw/raw.cpp: bare frames there and back, or one way: what a link can do without the protocol.
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
