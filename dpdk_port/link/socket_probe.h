// SPDX-License-Identifier: BSD-3-Clause
// Whether a program still serves a Unix socket, or has left only its file behind.
#pragma once

#include <string>

namespace stp::port {

// Returns 0 if a process has the socket at `path`, else an errno: ECONNREFUSED, nobody has it;
// ENOENT, ENAMETOOLONG, EACCES, ... Never waits, and the process does not notice it.
int probe_socket(const std::string& path);

// Removes the file at `path` if it is a socket that nobody has; leaves anything else. A killed
// server leaves its socket's file behind, where the next one could not bind.
void remove_stale_socket(const std::string& path);

}  // namespace stp::port
