// SPDX-License-Identifier: BSD-3-Clause
// stpd: owns links and serves the programs of this machine on them.
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <optional>
#include <string>

#include "libst/os/file_limit.h"
#include "libst/os/standard_streams.h"
#include "tools/stpd/daemon.h"
#include "tools/stpd/log.h"
#include "tools/stpd/notify.h"
#include "tools/stpd/options.h"

namespace {

using stp::stpd::log;
using stp::stpd::LogLevel;
using stp::stpd::Options;
using stp::stpd::Watchdog;

// Call before any thread starts, so that all threads block these signals: serve() waits for them.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // Writing to a closed pipe or socket then returns EPIPE instead of ending the process.
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

std::string reloading() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto microseconds = now.tv_sec * 1'000'000 + now.tv_nsec / 1'000;
  return "RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds);
}

void reload(int argc, char** argv, stp::stpd::Daemon& daemon, Options& options) {
  std::vector<std::string> errors;
  auto wanted = stp::stpd::reload_options(argc, argv, errors);
  for (const auto& error : errors) log(LogLevel::kError, error);
  if (!wanted) return log(LogLevel::kError, "not reloaded: the old settings stay in force");
  stp::stpd::set_log(wanted->log_level, wanted->log_format);
  daemon.apply(*wanted);
  log(LogLevel::kInfo, "reloaded: log, quotas and listen rules are in force");
  for (const auto& name : needs_restart(options, *wanted))
    log(LogLevel::kWarning, name + ": a change takes a restart of stpd");
  options.log_level = wanted->log_level;
  options.log_format = wanted->log_format;
}

// How long to wait for signals before the links and the watchdog need attention again.
timespec time_to_wait(const std::optional<Watchdog>& watchdog) {
  std::chrono::nanoseconds wait = std::chrono::milliseconds(500);
  if (watchdog)
    wait = std::clamp<std::chrono::nanoseconds>(watchdog->next() - Watchdog::Clock::now(),
                                                std::chrono::nanoseconds::zero(), wait);
  return {.tv_sec = 0, .tv_nsec = static_cast<long>(wait.count())};
}

// Runs until SIGTERM or SIGINT comes, and returns it; 0: a link cannot be served. Meanwhile it
// reloads the options on SIGHUP, logs changes of the links, and notifies the watchdog while every
// thread makes progress.
int serve(int argc, char** argv, const sigset_t& signals, const stp::stpd::Notifier& notifier,
          stp::stpd::Daemon& daemon, Options options) {
  std::optional<Watchdog> watchdog;
  if (const auto interval = notifier.watchdog(); interval)
    watchdog.emplace(*interval, Watchdog::Clock::now());
  for (;;) {
    const auto wait = time_to_wait(watchdog);
    const auto signal = ::sigtimedwait(&signals, nullptr, &wait);
    if (signal == SIGHUP) {
      notifier.tell(reloading());
      reload(argc, argv, daemon, options);
      notifier.tell("READY=1");
    } else if (signal > 0) {
      return signal;
    } else {
      const auto before = daemon.status();
      if (!daemon.look_at_links()) return 0;
      if (const auto status = daemon.status(); status != before)
        notifier.tell("STATUS=Serving " + status);
      if (watchdog && watchdog->is_due(Watchdog::Clock::now(), [&] { return daemon.is_alive(); }))
        notifier.tell("WATCHDOG=1");
    }
  }
}

void warn_of_size_limit() {
  const auto most = stp::service::raise_file_size_limit();
  if (most == RLIM_INFINITY) return;
  log(LogLevel::kWarning, "files of stpd may have at most " + std::to_string(most) +
                              " bytes (ulimit -f): memory that it shares with programs may not "
                              "fit, and traces end there; set LimitFSIZE=infinity");
}

int run(int argc, char** argv, const Options& options) {
  const auto signals = block_signals();
  stp::service::make_room_for_files(stp::service::raise_file_limit());
  stp::stpd::set_log(options.log_level, options.log_format);
  warn_of_size_limit();
  const stp::stpd::Notifier notifier;
  const auto daemon = stp::stpd::Daemon::start(options);
  if (!daemon) return 1;
  const auto status = daemon->status();
  log(LogLevel::kInfo, options.links.size() == 1 ? "ready" : "ready: " + status);
  notifier.tell("READY=1\nSTATUS=Serving " + status);
  const auto signal = serve(argc, argv, signals, notifier, *daemon, options);
  notifier.tell("STOPPING=1");
  if (signal == 0) return 1;
  log(LogLevel::kInfo, std::string("ending on ") + (signal == SIGTERM ? "SIGTERM" : "SIGINT"));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  stp::service::hold_standard_streams();
  try {
    const auto choice = stp::stpd::parse_options(argc, argv);
    if (choice.options) return run(argc, argv, *choice.options);
    return stp::service::status_with_output("stpd", choice.exit_status, 1);
  } catch (const std::exception& error) {
    log(LogLevel::kError, error.what());
    return 1;
  }
}
