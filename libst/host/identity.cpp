// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/identity.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

// Older kernel headers lack it.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace stp::host {
namespace {

// Returns the peer's primary group, then its supplementary groups, as they were when it connected.
std::vector<gid_t> groups_of(int socket, gid_t own) {
  std::vector<gid_t> groups(64);
  for (;;) {
    auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const auto result = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
    if (result != 0 && errno != ERANGE) return {own};
    groups.resize(size / sizeof(gid_t));
    if (result != 0) continue;
    groups.insert(groups.begin(), own);
    return groups;
  }
}

// For kernels before 6.5. A small race remains: if the process ends after connect(), its number may
// belong to another process by now.
int open_by_number(pid_t pid, os::UniqueFd& out) {
  if (pid <= 0) return 0;
  out.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return out || errno == ENOSYS || errno == EPERM ? 0 : -errno;
}

int open_by_socket(int socket, pid_t pid, os::UniqueFd& out) {
  int descriptor = -1;
  socklen_t size = sizeof descriptor;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &size) == 0) {
    out.reset(descriptor);
    return 0;
  }
  if (errno == ENOPROTOOPT) return open_by_number(pid, out);
  return errno == EINVAL ? -ESRCH : -errno;  // some kernels report an ended process by EINVAL
}

bool has_ended(int process) {
  pollfd look{.fd = process, .events = POLLIN, .revents = 0};
  return ::poll(&look, 1, 0) == 1;
}

}  // namespace

std::optional<ClientIdentity> identify_peer(int socket) {
  ucred who{};
  socklen_t length = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) return std::nullopt;
  return ClientIdentity{.pid = who.pid,
                        .uid = who.uid,
                        .groups = {who.gid},
                        .administrator = who.uid == 0 || who.uid == ::geteuid()};
}

void find_groups(int socket, std::optional<gid_t> admin_group, ClientIdentity& who) {
  who.groups = groups_of(socket, who.groups.front());
  if (!admin_group) return;
  if (std::find(who.groups.begin(), who.groups.end(), *admin_group) != who.groups.end())
    who.administrator = true;
}

int open_process(int socket, pid_t pid, os::UniqueFd& out) {
  if (const auto error = open_by_socket(socket, pid, out); error != 0) return error;
  return out && has_ended(out.get()) ? -ESRCH : 0;
}

}  // namespace stp::host
