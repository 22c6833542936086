// SPDX-License-Identifier: BSD-3-Clause
// Users and groups: who is at the other end of a socket, and whom an operator names.
#pragma once

#include <grp.h>
#include <pwd.h>
#include <sys/types.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libst/os/unique_fd.h"

namespace stp::host {

// Parses users and groups, given by name or by number. For start-up and reloads only: looking up a
// name may be slow.
inline std::optional<std::uint32_t> parse_id(const std::string& text) {
  std::uint32_t id = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, id);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return id;
}

inline std::optional<uid_t> find_user(const std::string& name) {
  if (const auto* const entry = ::getpwnam(name.c_str())) return entry->pw_uid;
  return parse_id(name);
}

inline std::optional<gid_t> find_group(const std::string& name) {
  if (const auto* const entry = ::getgrnam(name.c_str())) return entry->gr_gid;
  return parse_id(name);
}

// Who is at the other end of a Unix socket: its user and groups, and its process. Other processes
// can inherit a socket and outlive the program that made it, so the service watches the process and
// not the socket.

using ClientId = std::uint32_t;

inline constexpr uid_t kUnknownUser = ~uid_t{0};

struct ClientIdentity {
  pid_t pid = 0;
  uid_t uid = kUnknownUser;
  std::vector<gid_t> groups;  // the primary group first
  bool administrator = false;
};

// Identifies the process at the other end of a Unix socket, by its primary group only. Root and the
// user of this process are administrators. nullopt: the system does not tell.
std::optional<ClientIdentity> identify_peer(int socket);
// Adds the other groups, of which a process may have 65,536: then this takes half a millisecond.
// Members of `admin_group` are administrators, too.
void find_groups(int socket, std::optional<gid_t> admin_group, ClientIdentity& who);

// Makes a descriptor that becomes readable when the connected process ends. `pid`: as the socket
// reports it; 0: a process that this one cannot see. Returns 0 and sets `out`, which stays empty if
// this kernel has no such descriptor; -ESRCH: the process has ended.
int open_process(int socket, pid_t pid, os::UniqueFd& out);

}  // namespace stp::host
