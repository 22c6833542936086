// SPDX-License-Identifier: BSD-3-Clause
// Watching a service from outside: who may, and what a trace is to it.
//   link, counters    every client: sums that name nobody
//   connections,      a client sees those of its own user; an administrator all. Nobody is shown
//   regions, users    Keys or addresses of memory.
//   traces            administrators only: frames hold everybody's data
// An administrator is root, the user that the service runs as, or a member of the group that the
// operator has named for it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <vector>

#include "libst/os/unique_fd.h"
#include "libst/service/messages.h"

namespace stp::service {

using ClientId = std::uint32_t;

inline constexpr uid_t kUnknownUser = ~uid_t{0};

struct ClientIdentity {
  pid_t pid = 0;
  uid_t uid = kUnknownUser;
  std::vector<gid_t> groups;  // its own first
  bool administrator = false;
};

// Who is at the other end of a Unix socket. nullopt: the system does not say.
std::optional<ClientIdentity> identify_peer(int socket, std::optional<gid_t> admin_group);

// The trace that a service can make on demand. Its functions are called without the drive lock,
// from one thread, and do not wait for the file.
class TraceControl {
 public:
  virtual ~TraceControl() = default;
  // Takes `file` over where it succeeds. What is wrong with the file itself status() tells.
  virtual int start(const TraceOrder& order, ClientId by, UniqueFd& file) = 0;
  virtual int stop() = 0;
  virtual int status(AdminEntry& out) = 0;
  // Ends a trace that was not to outlive its client.
  virtual void client_gone(ClientId client) = 0;
};

constexpr bool is_admin(RequestKind kind) {
  return kind >= RequestKind::kAdminLink && kind <= RequestKind::kAdminUser;
}
constexpr bool is_trace(RequestKind kind) {
  return kind >= RequestKind::kTraceStart && kind <= RequestKind::kTraceStatus;
}

// What watching takes, and nothing that uses the link.
constexpr bool is_watching(RequestKind kind) {
  return is_admin(kind) || kind == RequestKind::kStats;
}

// Answers kTrace*: 0 or a negative errno. `control` may be null: -EOPNOTSUPP.
int answer_trace(TraceControl* control, ClientId client, bool administrator, const Request& request,
                 std::span<UniqueFd> fds, Reply& reply);

}  // namespace stp::service
