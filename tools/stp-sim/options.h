// SPDX-License-Identifier: BSD-3-Clause
// The command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stp::sim {

struct Options {
  std::optional<std::uint64_t> seed;            // one run
  std::uint64_t first_seed = 0, last_seed = 0;  // many
  std::string profile = "all";
  unsigned jobs = 1;
  unsigned nodes = 1;  // behind the address of each host
  bool verbose = false;
  std::string pcapng;
  unsigned pcapng_host = 0;  // 0: all
  bool list = false;
  unsigned incast = 0;  // senders
  bool overhead = false;
  unsigned soak = 0;  // hours
};

// Returns nullopt if the program must exit with `exit_status`.
std::optional<Options> parse_options(int argc, char** argv, int& exit_status);

}  // namespace stp::sim
