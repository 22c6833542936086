// SPDX-License-Identifier: BSD-3-Clause
// stpctl: shows what stpd does, makes traces of it, and measures round trips.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "tools/stpctl/commands.h"
#include "tools/stpctl/failure.h"
#include "tools/stpctl/options.h"

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
  try {
    int exit_status = EXIT_SUCCESS;
    const auto options = stp::stpctl::parse_options(argc, argv, exit_status);
    if (!options) return exit_status;
    run(*options);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw stp::stpctl::Failure(std::string("cannot write to standard output: ") +
                                 std::strerror(errno));
    return EXIT_SUCCESS;
  } catch (const std::exception& failure) {
    std::fflush(stdout);
    std::fprintf(stderr, "stpctl: %s\n", failure.what());
    return EXIT_FAILURE;
  }
}
