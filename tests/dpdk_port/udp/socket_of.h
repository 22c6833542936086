// SPDX-License-Identifier: BSD-3-Clause
// Finds the socket of a link of this program: what a test does to it, only the kernel could do.
#pragma once

#include <sys/socket.h>

#include "dpdk_port/link/address.h"
#include "dpdk_port/port.h"

namespace stp::port {

// The one at the UDP port of the link that is connected to nobody, or to somebody, or to where
// nobody is. -1: there is none.
enum class Connected { kNot, kToSomebody, kToNobody };
inline int socket_of(const Port& port, Connected wanted = Connected::kNot) {
  constexpr int kMost = 1'024;
  constexpr std::uint16_t kDiscard = 9;
  for (int fd = 0; fd < kMost; ++fd) {
    sockaddr_storage name{}, peer{};
    socklen_t length = sizeof name, peer_length = sizeof peer;
    auto* const as_any = reinterpret_cast<sockaddr*>(&name);
    if (::getsockname(fd, as_any, &length) != 0) continue;
    const auto address = from_socket_address(as_any);
    if (!address || address->port != port.info().udp_port) continue;
    auto* const peer_as_any = reinterpret_cast<sockaddr*>(&peer);
    const bool has_peer = ::getpeername(fd, peer_as_any, &peer_length) == 0;
    const auto to = has_peer ? from_socket_address(peer_as_any) : std::nullopt;
    const auto is = !to                    ? Connected::kNot
                    : to->port == kDiscard ? Connected::kToNobody
                                           : Connected::kToSomebody;
    if (is == wanted) return fd;
  }
  return -1;
}

}  // namespace stp::port
