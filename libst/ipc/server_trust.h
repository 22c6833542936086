// SPDX-License-Identifier: BSD-3-Clause
// Whether a program may believe that whoever serves a Unix socket is the stpd that it looks for.
#pragma once

#include <sys/types.h>

#include <string>

namespace stp::ipc {

// Why this user should not trust `server` to serve the socket at `path`; "": it may. A program
// lends its memory to who serves its socket, and believes what it is told there. Trusted are:
//   root and this user;
//   another user, if nobody but root, this user and the server could have put the socket there:
//   they have each directory on the way, links included, and others may not make files in it. In a
//   sticky directory (/tmp) others may, but not replace a directory of root or of this user. What
//   is mounted there is nobody's.
// So whoever was the first to take a name in /tmp is not trusted, nor is what lies below a
// directory or a link that it has made there.
std::string why_distrust(const std::string& path, uid_t server);

// The same of whoever listens at the other end of `connected`, as the kernel tells it.
std::string why_distrust_server(const std::string& path, int connected);

}  // namespace stp::ipc
