// SPDX-License-Identifier: BSD-3-Clause
// stpd: owns links and serves the programs of this machine on them.
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpdk_port/dpdk/telemetry.h"
#include "libst/ipc/socket.h"
#include "libst/os/file_limit.h"
#include "libst/os/standard_streams.h"
#include "stp/base/caught.h"
#include "tools/stpd/log.h"
#include "tools/stpd/memory_reserve.h"
#include "tools/stpd/options.h"
#include "tools/stpd/served_link.h"

namespace stp::stpd {
namespace {

// stpd as a whole: owns its links, and does what concerns all of them. Only the main thread calls
// it.
class Daemon {
 public:
  // Logs each link that cannot be opened, and serves the others. nullptr: no link is left, or the
  // process could not drop its privileges. Threads that serve clients start without privileges.
  static std::unique_ptr<Daemon> start(const Options& options);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Applies quotas and `listen` rules to all links.
  void apply(const Options& options);
  // Returns false if a thread has made no progress since the last call.
  bool is_alive();
  // Logs changes of the links' states since the last call, and their trouble. Opens links whose
  // interface has come. False: one of them cannot be served.
  bool look_at_links();
  // "2 links", "1 of 2 links: b", or "2 links, 1 of them waiting for what is missing"
  [[nodiscard]] std::string status() const;

 private:
  Daemon() = default;
  void open_links(const Options& options);
  bool serve();

  std::optional<LogThread> log_thread_;  // destroyed last
  OwnFiles own_files_;
  std::size_t wanted_ = 0;
  std::vector<std::unique_ptr<ServedLink>> links_;
};

// Privileges that stpd needs to open links and sockets, but not to serve programs.
struct Rights {
  std::string user;   // to switch to; "": unchanged
  std::string group;  // "": the user's primary group
  // A link of af_xdp has entered promiscuous mode and must leave it at the end.
  bool keep_net_admin = false;
};

// Drops the calling thread's capabilities except those in `mask`. Makes the system calls itself,
// because the C library has no functions for them.
bool keep_only(std::uint32_t mask) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return false;
  const auto kept = sets[0].permitted & mask;
  sets = {};
  sets[0] = {.effective = kept, .permitted = kept, .inheritable = 0};
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return ::syscall(SYS_capset, &header, sets.data()) == 0;
}

bool become(uid_t user, gid_t group) {
  return ::setgroups(0, nullptr) == 0 && ::setresgid(group, group, group) == 0 &&
         ::setresuid(user, user, user) == 0;
}

// Returns the user's primary group.
std::optional<gid_t> group_of(uid_t user) {
  const auto* const entry = ::getpwuid(user);
  return entry == nullptr ? std::nullopt : std::optional<gid_t>(entry->pw_gid);
}

bool change_user(const Rights& rights, std::string& error) {
  const auto user = ipc::find_user(rights.user);
  if (!user) {
    error = "user " + rights.user + ": there is no such user: useradd --system " + rights.user;
    return false;
  }
  const auto group = rights.group.empty() ? group_of(*user) : ipc::find_group(rights.group);
  if (!group) {
    error = rights.group.empty() ? "user " + rights.user + " has no primary group: name a --group"
                                 : "group " + rights.group + ": there is no such group";
    return false;
  }
  if (*user == ::geteuid() && *group == ::getegid()) return true;
  ::prctl(PR_SET_KEEPCAPS, 1);
  if (become(*user, *group)) return true;
  error = "cannot switch to user " + rights.user + ": " + std::strerror(errno) +
          " (this needs root, or CAP_SETUID and CAP_SETGID)";
  return false;
}

// Switches to that user and group, without supplementary groups (a process that has both already
// keeps them). Then drops all capabilities of the calling thread except those named. Call it before
// threads start that serve clients, because capabilities belong to threads. A process of root that
// stays root keeps everything. False: `error` says what is wrong.
bool drop_rights(const Rights& rights, std::string& error) {
  if (!rights.user.empty() && !change_user(rights, error)) return false;
  if (::geteuid() == 0) return true;
  const auto mask = rights.keep_net_admin ? CAP_TO_MASK(CAP_NET_ADMIN) : 0U;
  if (keep_only(mask) && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) return true;
  error = std::string("cannot give up capabilities: ") + std::strerror(errno);
  return false;
}

port::LinkConfig parsed(const LinkOptions& link) {
  port::LinkConfig config;
  std::string error;  // stays empty: the text was checked when the options were parsed
  port::parse_link(link.link, config, error);
  return config;
}

// A MAC address that is not the interface's own needs promiscuous mode. A packet socket leaves it
// when it is closed; af_xdp has to switch it off at the end.
bool switches_promiscuous_mode(const LinkOptions& link) {
  const auto config = parsed(link);
  return config.kind == port::LinkKind::kIface && config.mac &&
         config.driver == port::IfaceDriver::kAfXdp;
}

// DPDK is told to scan the PCI bus only if the first link that it opens is a PCI device.
std::vector<LinkOptions> nics_first(std::vector<LinkOptions> links) {
  std::stable_partition(links.begin(), links.end(), [](const LinkOptions& link) {
    return parsed(link).kind == port::LinkKind::kPci;
  });
  return links;
}

std::unique_ptr<Daemon> Daemon::start(const Options& options) {
  std::unique_ptr<Daemon> daemon(new Daemon);
  daemon->open_links(options);
  if (daemon->links_.empty()) return nullptr;
  const Rights rights{.user = options.user,
                      .group = options.group,
                      .keep_net_admin = std::any_of(options.links.begin(), options.links.end(),
                                                    switches_promiscuous_mode)};
  std::string error;
  if (!drop_rights(rights, error)) {
    log(LogLevel::kError, error);
    return nullptr;
  }
  daemon->log_thread_
      .emplace();  // after dropping privileges, and before clients can cause log lines
  return daemon->serve() ? std::move(daemon) : nullptr;
}

void Daemon::open_links(const Options& options) {
  wanted_ = options.links.size();
  port::enable_telemetry();
  for (const auto& link : nics_first(options.links)) {
    std::string error;
    auto served = ServedLink::open(link, options, own_files_, wanted_ == 1, error);
    if (const auto notice = port::take_notice(); !notice.empty()) log(LogLevel::kWarning, notice);
    if (served)
      links_.push_back(std::move(served));
    else
      log(LogLevel::kError, error, wanted_ == 1 ? std::string() : link.name);
  }
  own_files_.look(options);
}

bool Daemon::serve() {
  for (const auto& link : links_) {
    std::string error;
    if (link->serve(links_.size(), error)) continue;
    log(LogLevel::kError, error, link->name());
    return false;
  }
  return true;
}

// All links begin to leave before the first one is waited for: each may have to wait for its peers.
Daemon::~Daemon() {
  for (const auto& link : links_) link->begin_to_leave();
  links_.clear();
}

void Daemon::apply(const Options& options) {
  for (const auto& link : links_) link->apply(options);
}

bool Daemon::is_alive() {
  bool alive = true;
  for (const auto& link : links_) alive &= link->is_alive();
  return alive;
}

bool Daemon::look_at_links() {
  for (const auto& link : links_) {
    std::string error;
    if (link->is_absent() && !link->look_for_what_was_missing(error)) {
      log(LogLevel::kError, error, link->name());
      return false;
    }
    link->log_state();
  }
  return true;
}

std::string Daemon::status() const {
  const auto absent = std::ranges::count_if(links_, &ServedLink::is_absent);
  const auto waiting = absent == 0 ? std::string()
                       : wanted_ == 1
                           ? ", which waits for what is missing"
                           : ", " + std::to_string(absent) + " of them waiting for what is missing";
  if (links_.size() == wanted_)
    return std::to_string(wanted_) + (wanted_ == 1 ? " link" : " links") + waiting;
  std::string names;
  for (const auto& link : links_) names += (names.empty() ? "" : ", ") + link->name();
  return std::to_string(links_.size()) + " of " + std::to_string(wanted_) + " links: " + names +
         waiting;
}

}  // namespace
}  // namespace stp::stpd

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
  const auto most = stp::os::raise_file_size_limit();
  if (most == RLIM_INFINITY) return;
  log(LogLevel::kWarning, "files of stpd may have at most " + std::to_string(most) +
                              " bytes (ulimit -f): memory that it shares with programs may not "
                              "fit, and traces end there; set LimitFSIZE=infinity");
}

int run(int argc, char** argv, const Options& options) {
  stp::stpd::keep_memory_in_reserve();
  const auto signals = block_signals();
  stp::os::make_room_for_files(stp::os::raise_file_limit());
  stp::stpd::set_log(options.log_level, options.log_format);
  warn_of_size_limit();
  const stp::stpd::Notifier notifier;
  const auto daemon = stp::stpd::Daemon::start(options);
  if (!daemon) return 1;
  const auto status = daemon->status();
  log(LogLevel::kInfo, status == "1 link" ? "ready" : "ready: " + status);
  notifier.tell("READY=1\nSTATUS=Serving " + status);
  const auto signal = serve(argc, argv, signals, notifier, *daemon, options);
  notifier.tell("STOPPING=1");
  if (signal == 0) return 1;
  log(LogLevel::kInfo, std::string("ending on ") + (signal == SIGTERM ? "SIGTERM" : "SIGINT"));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  stp::os::hold_standard_streams();
  try {
    const auto choice = stp::stpd::parse_options(argc, argv);
    if (choice.options) return run(argc, argv, *choice.options);
    return stp::os::status_with_output("stpd", choice.exit_status, 1);
  } catch (const std::exception& error) {
    log(LogLevel::kError, stp::what_of(error));
    return 1;
  }
}
