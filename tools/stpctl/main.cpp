// SPDX-License-Identifier: BSD-3-Clause
// stpctl: shows what stpd does, makes traces of it, and measures round trips.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "libst/os/standard_streams.h"
#include "tools/stpctl/commands.h"

namespace {

void run(const stp::stpctl::Options& options) {
  using stp::stpctl::Command;
  switch (options.command) {
    case Command::kLinks:
    case Command::kConnections:
    case Command::kRegions:
    case Command::kUsers:
    case Command::kStats:
      return show(options);
    case Command::kTop:
      return top(options);
    case Command::kDatConf:
      return dat_conf(options);
    case Command::kDevices:
      return devices(options);
    case Command::kTrace:
    case Command::kTraceStart:
    case Command::kTraceStop:
    case Command::kTraceStatus:
      return trace(options);
    case Command::kPing:
      return ping(options);
  }
}

}  // namespace

int main(int argc, char** argv) {
  stp::service::hold_standard_streams();
  try {
    int exit_status = EXIT_SUCCESS;
    const auto options = stp::stpctl::parse_options(argc, argv, exit_status);
    if (!options) return stp::service::status_with_output("stpctl", exit_status, EXIT_FAILURE);
    run(*options);
    return stp::service::status_with_output("stpctl", EXIT_SUCCESS, EXIT_FAILURE);
  } catch (const std::exception& failure) {
    std::fflush(stdout);
    std::fprintf(stderr, "stpctl: %s\n", failure.what());
    return EXIT_FAILURE;
  }
}
