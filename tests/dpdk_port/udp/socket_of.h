// SPDX-License-Identifier: BSD-3-Clause
// Finds the socket of a link of this program: what a test does to it, only the kernel could do.
#pragma once

#include <sys/socket.h>

#include "dpdk_port/link/address.h"
#include "dpdk_port/port.h"

namespace stp::port {

// The one at the UDP port of the link that is connected to nobody, or to somebody. -1: there is
// none.
inline int socket_of(const Port& port, bool connected = false) {
  constexpr int kMost = 1'024;
  for (int fd = 0; fd < kMost; ++fd) {
    sockaddr_storage name{}, peer{};
    socklen_t length = sizeof name, peer_length = sizeof peer;
    auto* const as_any = reinterpret_cast<sockaddr*>(&name);
    if (::getsockname(fd, as_any, &length) != 0) continue;
    const auto address = from_socket_address(as_any);
    if (!address || address->port != port.info().udp_port) continue;
    const bool has_peer = ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0;
    if (has_peer == connected) return fd;
  }
  return -1;
}

}  // namespace stp::port
