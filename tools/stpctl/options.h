// SPDX-License-Identifier: BSD-3-Clause
// The command line of stpctl.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stp::stpctl {

enum class Command {
  kLinks,
  kConnections,
  kRegions,
  kUsers,
  kStats,
  kTop,
  kDatConf,
  kDevices,
  kTrace,
  kTraceStart,
  kTraceStop,
  kTraceStatus,
  kPing,
};

struct Options {
  Command command = Command::kLinks;
  std::vector<std::string> sockets;  // paths, at least one
  bool json = false;
  // stats
  bool all = false, shards = false, prometheus = false;
  // top, ping
  double interval = 1;
  std::uint64_t count = 0;  // 0: until a signal comes
  // trace
  std::string out;
  double seconds = 0;        // 0: no limit
  std::uint64_t frames = 0;  // likewise
  bool everything = false;
  std::uint32_t snap = 0;    // 0: whole frames
  std::uint64_t buffer = 0;  // bytes; 0: the daemon's default
  // ping
  std::string peer, link;
  double timeout = 1;
  bool serve = false;
  // dat-conf: uses `link`, or if that is empty the links of all `sockets`
  std::string name = "stp", provider;
};

// nullopt: the program ends with `exit_status`; help or the error has been printed.
std::optional<Options> parse_options(int argc, char** argv, int& exit_status);

}  // namespace stp::stpctl
