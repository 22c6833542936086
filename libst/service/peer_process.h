// SPDX-License-Identifier: BSD-3-Clause
// The process at the other end of a Unix socket. Other processes can inherit a socket and outlive
// the program that made it, so the service watches the process and not the socket.
#pragma once

#include <sys/types.h>

#include "libst/os/unique_fd.h"

namespace stp::service {

// Makes a descriptor that becomes readable when the connected process ends. `pid`: as the socket
// reports it; 0: a process that this one cannot see. Returns 0 and sets `out`, which stays empty if
// this kernel has no such descriptor; -ESRCH: the process has ended.
int open_process(int socket, pid_t pid, UniqueFd& out);

}  // namespace stp::service
