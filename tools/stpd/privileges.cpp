// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/privileges.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

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

}  // namespace stp::stpd
