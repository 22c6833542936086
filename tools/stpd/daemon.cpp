// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/daemon.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "dpdk_port/dpdk/telemetry.h"
#include "libst/service/identity.h"

namespace stp::stpd {
namespace {

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
  const auto user = service::find_user(rights.user);
  if (!user) {
    error = "user " + rights.user + ": there is no such user: useradd --system " + rights.user;
    return false;
  }
  const auto group = rights.group.empty() ? group_of(*user) : service::find_group(rights.group);
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

}  // namespace

bool drop_rights(const Rights& rights, std::string& error) {
  if (!rights.user.empty() && !change_user(rights, error)) return false;
  if (::geteuid() == 0) return true;
  const auto mask = rights.keep_net_admin ? CAP_TO_MASK(CAP_NET_ADMIN) : 0U;
  if (keep_only(mask) && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) return true;
  error = std::string("cannot give up capabilities: ") + std::strerror(errno);
  return false;
}

namespace {

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
  const auto driver = config.options.find("driver");
  return config.kind == port::LinkKind::kIface && config.mac && driver != config.options.end() &&
         driver->second == "af_xdp";
}

// DPDK is told to scan the PCI bus only if the first link that it opens is a PCI device.
std::vector<LinkOptions> nics_first(std::vector<LinkOptions> links) {
  std::stable_partition(links.begin(), links.end(), [](const LinkOptions& link) {
    return parsed(link).kind == port::LinkKind::kPci;
  });
  return links;
}

}  // namespace

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
    auto served = ServedLink::open(link, options, wanted_ == 1, error);
    if (const auto notice = port::take_notice(); !notice.empty()) log(LogLevel::kWarning, notice);
    if (served)
      links_.push_back(std::move(served));
    else
      log(LogLevel::kError, error, wanted_ == 1 ? std::string() : link.name);
  }
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

}  // namespace stp::stpd
