// SPDX-License-Identifier: BSD-3-Clause
// stpctl: shows what stpd does, makes traces of it, and measures round trips.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "libst/os/standard_streams.h"
#include "tools/cli/app.h"
#include "tools/cli/say.h"
#include "tools/stpctl/commands.h"
#include "tools/stpctl/ending.h"

int main(int argc, char** argv) {
  stp::os::hold_standard_streams();
  try {
    int exit_status = EXIT_SUCCESS;
    const auto options = stp::stpctl::parse_options(argc, argv, exit_status);
    if (!options) return stp::os::status_with_output("stpctl", exit_status, EXIT_FAILURE);
    options->run(*options);
    return stp::os::status_with_output("stpctl", EXIT_SUCCESS, EXIT_FAILURE);
  } catch (const stp::stpctl::WrongUsage& failure) {
    std::fflush(stdout);
    return stp::cli::usage_error("stpctl", failure.what(), stp::cli::kWrongUsage);
  } catch (const stp::stpctl::Failure& failure) {
    std::fflush(stdout);
    for (const auto& each : failure.what_each) stp::cli::say("stpctl", each);
    return EXIT_FAILURE;
  } catch (const std::exception& failure) {
    std::fflush(stdout);
    stp::cli::say("stpctl", failure.what());
    return EXIT_FAILURE;
  }
}
