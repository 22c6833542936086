// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/admin.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace stp::service {
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

// Checks for a regular file that is open for writing. AT_STATX_DONT_SYNC uses what the kernel
// knows: asking the file system, for example a FUSE server, could block.
bool may_be_written(int file) {
  struct statx status {};
  if (::statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0 ||
      !S_ISREG(status.stx_mode))
    return false;
  const auto mode = ::fcntl(file, F_GETFL) & O_ACCMODE;
  return mode == O_WRONLY || mode == O_RDWR;
}

}  // namespace

std::optional<ClientIdentity> identify_peer(int socket, std::optional<gid_t> admin_group) {
  ucred who{};
  socklen_t length = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) return std::nullopt;
  ClientIdentity identity{.pid = who.pid, .uid = who.uid, .groups = groups_of(socket, who.gid)};
  const auto& groups = identity.groups;
  const auto in_group =
      admin_group && std::find(groups.begin(), groups.end(), *admin_group) != groups.end();
  identity.administrator = who.uid == 0 || who.uid == ::geteuid() || in_group;
  return identity;
}

int answer_trace(TraceControl* control, ClientId client, bool administrator, const Request& request,
                 std::span<UniqueFd> fds, Reply& reply) {
  if (!administrator) return -EPERM;
  if (control == nullptr) return -EOPNOTSUPP;
  if (request.kind == RequestKind::kTraceStop) return control->stop();
  if (request.kind == RequestKind::kTraceStatus) return control->status(reply.admin);
  // A pipe or a socket could block the writer until somebody reads from it.
  if (fds.size() != 1 || !may_be_written(fds[0].get())) return -EINVAL;
  return control->start(request.trace, client, fds[0]);
}

}  // namespace stp::service
