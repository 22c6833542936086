// SPDX-License-Identifier: BSD-3-Clause
// Requests that watch a service, and the names of what they tell.
#pragma once

#include <span>
#include <string_view>

#include "libst/ipc/requests.h"
#include "libst/os/unique_fd.h"
#include "libst/service/identity.h"
#include "stp/node/node.h"

namespace stp::service {

// Names of states and directions, the same in stpctl and in telemetry.
constexpr std::string_view name_of(VcState state) {
  switch (state) {
    case VcState::kConnecting:
      return "connecting";
    case VcState::kOpen:
      return "open";
    case VcState::kClosing:
      return "closing";
    case VcState::kPeerClosing:
      return "peer-closing";
    case VcState::kBothClosing:
      return "both-closing";
    case VcState::kAsked:
      return "asked";
    case VcState::kPeerClosed:
      return "peer-closed";
    case VcState::kFailed:
      return "failed";
  }
  return "unknown";
}

constexpr std::string_view name_of(Direction direction) {
  return direction == Direction::kTransmit ? "tx" : "rx";
}

// Requests that watch a service, and who may see what:
//   link, counters    every client: sums that identify nobody
//   connections,      a client sees those of its own user, an administrator sees all; Keys and
//   regions, users    addresses of memory are never shown
//   traces            administrators only: frames hold the data of all users
// Administrators are root, the user that the service runs as, and members of the group that the
// operator has configured.

// Starts and stops a trace of a service's frames on request. The Server calls it, one thread at a
// time and without a drive lock. No function waits for the file. Functions return 0 or a negative
// errno.
class TraceControl {
 public:
  virtual ~TraceControl() = default;
  // Takes ownership of `file` on success. status() reports errors of the file itself.
  virtual int start(const TraceOrder& order, ClientId by, UniqueFd& file) = 0;
  virtual int stop() = 0;
  virtual int status(AdminEntry& out) = 0;
  // Call when the client has gone. Ends its trace unless the trace was ordered to stay.
  virtual void client_gone(ClientId client) = 0;
};

constexpr bool is_admin(RequestKind kind) {
  return kind >= RequestKind::kAdminLink && kind <= RequestKind::kAdminSteering;
}
constexpr bool is_trace(RequestKind kind) {
  return kind >= RequestKind::kTraceStart && kind <= RequestKind::kTraceStatus;
}

// Requests that only watch and do not use the link.
constexpr bool is_watching(RequestKind kind) {
  return is_admin(kind) || kind == RequestKind::kStats;
}

// Answers kTrace*: 0 or a negative errno. `control` may be null: -EOPNOTSUPP.
int answer_trace(TraceControl* control, ClientId client, bool administrator, const Request& request,
                 std::span<UniqueFd> fds, Reply& reply);

}  // namespace stp::service
