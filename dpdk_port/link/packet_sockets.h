// SPDX-License-Identifier: BSD-3-Clause
// Packet sockets kept for links whose interface is not there yet: a daemon opens them before it
// gives up the right to (CAP_NET_RAW). One that is not bound receives nothing. Thread-safe.
#pragma once

#include <string>

namespace stp::port {

// Keeps one more. False: `error` says why it cannot be opened.
bool keep_packet_socket(std::string& error);
// Whether open_packet_socket() can succeed; errno if not.
bool may_open_packet_sockets();
// Returns a descriptor that is not bound, or -1 with errno.
int open_packet_socket();
// Closes one of open_packet_socket(). One that had been kept is kept again, without its rings,
// which must not be mapped.
void close_packet_socket(int fd);

}  // namespace stp::port
