// SPDX-License-Identifier: BSD-3-Clause
// stpd: owns one link and serves the programs of this machine on it.
#include <pthread.h>

#include <csignal>
#include <exception>
#include <string>

#include "libst/service/file_limit.h"
#include "tools/stpd/daemon.h"
#include "tools/stpd/log.h"
#include "tools/stpd/options.h"

namespace {

// Before any thread starts, so that none of them takes these: main() waits for them.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A peer that closes first is an error of write(), no reason to die.
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

int run(const stp::stpd::Options& options, const sigset_t& signals) {
  using stp::stpd::log;
  std::string error;
  auto const daemon = stp::stpd::Daemon::start(options, error);
  if (!daemon) {
    log(error);
    return 1;
  }
  log("ready");
  int signal = 0;
  sigwait(&signals, &signal);
  log(std::string("leaving: ") + (signal == SIGTERM ? "SIGTERM" : "SIGINT"));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    int exit_status = 0;
    auto const options = stp::stpd::parse_options(argc, argv, exit_status);
    if (!options) return exit_status;
    auto const signals = block_signals();
    stp::service::raise_file_limit();
    return run(*options, signals);
  } catch (const std::exception& error) {
    stp::stpd::log(error.what());
    return 1;
  }
}
