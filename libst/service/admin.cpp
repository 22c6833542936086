// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/admin.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

namespace stp::service {
namespace {

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
