// SPDX-License-Identifier: BSD-3-Clause
// The process at the other end of a Unix socket. A socket outlives the program that made it in
// whatever process has inherited it: so it is the process that is watched.
#pragma once

#include <sys/types.h>

#include "libst/os/unique_fd.h"

namespace stp::service {

// A descriptor that is readable once the process that has connected has ended. 0: `out` has it, or
// stays empty where this kernel has no such thing. -ESRCH: it has ended. `pid`: as the socket says;
// 0: of a process that this one cannot see.
int open_process(int socket, pid_t pid, UniqueFd& out);

}  // namespace stp::service
