// SPDX-License-Identifier: BSD-3-Clause
// The command line of stp-perf.
#pragma once

#include <optional>
#include <string>

#include "tools/perf/pace.h"
#include "tools/perf/plan.h"
#include "tools/perf/room.h"

namespace stp::perf {

enum class Command { kServer, kLatency, kBandwidth, kRate, kRaw, kMemcpy };

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

}  // namespace stp::perf
