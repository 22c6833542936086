// SPDX-License-Identifier: BSD-3-Clause
// Who is at the other end of a Unix socket: its user and groups, and its process. Other processes
// can inherit a socket and outlive the program that made it, so the service watches the process and
// not the socket.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "libst/os/unique_fd.h"

namespace stp::service {

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
int open_process(int socket, pid_t pid, UniqueFd& out);

}  // namespace stp::service
