// SPDX-License-Identifier: BSD-3-Clause
// stp-perf: measures Scheduled Transfers on a link, and for comparison the bare link and memory
// copies.
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "dpdk_port/link/cpus.h"
#include "dpdk_port/link/link.h"
#include "dpdk_port/link/start_thread.h"
#include "libst/ipc/link_choice.h"
#include "libst/os/standard_streams.h"
#include "stp/base/caught.h"
#include "stp/base/mutex.h"
#include "tools/cli/app.h"
#include "tools/cli/say.h"
#include "tools/files/signals.h"
#include "tools/perf/commands.h"

namespace stp::perf {
namespace {

void say(const std::string& text) {
  cli::say("stp-perf", text);
}

// What of the command line this machine cannot do; "": nothing.
std::string wrong_here(const Options& options) {
  const auto usable = port::usable_cpus();
  if (options.cpu && !usable.empty() &&
      !std::binary_search(usable.begin(), usable.end(), *options.cpu))
    return "--cpu " + std::to_string(*options.cpu) +
           ": this process cannot run on that CPU; nproc tells how many there are, taskset -p "
           "which";
  port::LinkConfig ignored;
  std::string wrong;
  const auto& link = options.setup.link;
  if (options.command != Command::kMemcpy && !link.empty()) port::parse_link(link, ignored, wrong);
  return wrong;
}

void stay_on(unsigned cpu) {
  if (const int error = port::stay_on_cpus({cpu}))
    throw std::runtime_error("this process cannot run on CPU " + std::to_string(cpu) + ": " +
                             std::strerror(error));
}

// A server on a thread of this program. Where another program listens on one of its ports, it takes
// some of the next ones.
class InnerServer {
 public:
  InnerServer(const Options& options, const UsageMeter& usage) {
    serving_.setup = options.setup;
    serving_.plan = &options.plan;
    serving_.listening = [this] { announce({}); };
    serving_.mishap = say;
    thread_ = start_thread([this, &usage] { run(usage); });
    Lock guard(mutex_);
    while (!ready_) guard.wait(announced_);
    if (failure_) {
      guard.unlock();
      thread_.join();
      std::rethrow_exception(failure_);
    }
  }
  ~InnerServer() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  InnerServer(const InnerServer&) = delete;
  InnerServer& operator=(const InnerServer&) = delete;

  [[nodiscard]] const std::string& port() const { return serving_.port; }

 private:
  static constexpr unsigned kFirstPort = 3000, kLastPort = 3098;
  static constexpr unsigned kPorts = 2;  // level0 also uses the next one

  void run(const UsageMeter& usage) {
    for (unsigned port = kFirstPort; !serve_at(port, usage); port += kPorts) {
    }
  }
  // False: the port has a listener, and there is another one to try.
  bool serve_at(unsigned port, const UsageMeter& usage) {
    serving_.port = ":" + std::to_string(port);
    try {
      run_server(serving_, usage, stop_);
    } catch (const Error& failure) {
      const bool is_taken = failure.code().value() == EADDRINUSE;
      if (is_taken && port < kLastPort) return false;
      announce(is_taken ? std::make_exception_ptr(all_taken()) : std::current_exception());
    } catch (...) {
      announce(std::current_exception());
    }
    return true;
  }
  static std::runtime_error all_taken() {
    const auto port = [](unsigned number) { return ":" + std::to_string(number); };
    return std::runtime_error("the ports " + port(kFirstPort) + ", " + port(kFirstPort + kPorts) +
                              " and so on to " + port(kLastPort) +
                              " of this link have listeners: end one of them, or name a server "
                              "as HOST:PORT");
  }
  void announce(std::exception_ptr failure) {
    const Lock guard(mutex_);
    failure_ = std::move(failure);
    ready_ = true;
    announced_.notify_all();
  }

  Serving serving_;
  Mutex mutex_;
  std::condition_variable_any announced_;
  bool ready_ STP_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ STP_GUARDED_BY(mutex_);
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

Result measure(const Options& options, const UsageMeter& usage, Histogram& latency) {
  if (options.command == Command::kMemcpy)
    return measure_copy(options.plan.size, options.working_set, options.pace, usage);
  const auto& link = options.setup.link;
  if (options.command == Command::kRaw)
    return options.one_way
               ? measure_raw_stream(link, options.plan.size, options.pace, usage)
               : measure_raw_latency(link, options.plan.size, options.pace, usage, latency);
  std::optional<InnerServer> server;
  if (options.peer.empty()) server.emplace(options, usage);
  auto result = run_client(options.setup, server ? server->port() : options.peer, options.plan,
                           options.pace, usage, latency);
  if (server) result.peer.reset();  // it is this process
  constexpr const char* kNames[] = {"", "latency", "bandwidth", "rate"};
  result.what = kNames[static_cast<std::size_t>(options.command)];
  return result;
}

void serve(const Options& options, const UsageMeter& usage) {
  const files::Signals signals("stp-perf");
  const auto& link = options.setup.link;
  if (options.command == Command::kRaw)
    return run_raw_server(
        link, [&] { say("answering bare frames on " + link); }, signals.stop());
  const Serving serving{options.setup, options.port,
                        options.once,  [&] { say("listening on " + options.port); },
                        say,           nullptr};
  run_server(serving, usage, signals.stop());
}

bool uses_libst(const Options& options) {
  return options.command != Command::kMemcpy && options.command != Command::kRaw;
}

// The loop link reaches no other program: client and server are then threads of this one.
void tell_link(const Options& options) {
  const auto choice = ipc::choose_link();
  const auto alone = options.command != Command::kServer && !options.serve && options.peer.empty();
  if (choice.is_loop() && !alone) throw std::runtime_error(no_link(choice));
  say(describe(choice));
}

void run(const Options& options) {
  if (options.cpu) stay_on(*options.cpu);
  if (!options.setup.link.empty()) ::setenv("STP_LINK", options.setup.link.c_str(), 1);
  const UsageMeter usage;
  if (uses_libst(options)) tell_link(options);
  if (options.command == Command::kServer || options.serve) return serve(options, usage);
  Histogram latency;
  const auto result = measure(options, usage, latency);
  std::fputs((options.json ? json_of(result) + '\n' : text_of(result)).c_str(), stdout);
}

}  // namespace
}  // namespace stp::perf

int main(int argc, char** argv) {
  stp::os::hold_standard_streams();
  int exit_status = EXIT_SUCCESS;
  const auto options = stp::perf::parse_options(argc, argv, exit_status);
  if (!options) return stp::os::status_with_output("stp-perf", exit_status, EXIT_FAILURE);
  if (const auto wrong = stp::perf::wrong_here(*options); !wrong.empty())
    return stp::cli::usage_error("stp-perf", wrong, stp::cli::kWrongUsage);
  try {
    stp::perf::run(*options);
    return stp::os::status_with_output("stp-perf", EXIT_SUCCESS, EXIT_FAILURE);
  } catch (const stp::perf::WrongUsage& failure) {
    return stp::cli::usage_error("stp-perf", failure.what(), stp::cli::kWrongUsage);
  } catch (const std::exception& failure) {
    stp::perf::say(stp::what_of(failure));
    return EXIT_FAILURE;
  }
}
