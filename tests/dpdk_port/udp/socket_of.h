// SPDX-License-Identifier: BSD-3-Clause
// Finds the socket of a link of this program: what a test does to it, only the kernel could do.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "dpdk_port/link/address.h"
#include "dpdk_port/port.h"

namespace stp::port {

inline constexpr int kMostDescriptors = 1'024;

// A socket is connected to nobody, or to somebody, or to where nobody is.
enum class Connected { kNot, kToSomebody, kToNobody };
// nullopt: the descriptor is no socket at that port.
inline std::optional<Connected> connection_of(int fd, std::uint16_t udp_port) {
  constexpr std::uint16_t kDiscard = 9;
  sockaddr_storage name{}, peer{};
  socklen_t length = sizeof name, peer_length = sizeof peer;
  auto* const as_any = reinterpret_cast<sockaddr*>(&name);
  if (::getsockname(fd, as_any, &length) != 0) return std::nullopt;
  const auto address = from_socket_address(as_any);
  if (!address || address->port != udp_port) return std::nullopt;
  auto* const peer_as_any = reinterpret_cast<sockaddr*>(&peer);
  const bool has_peer = ::getpeername(fd, peer_as_any, &peer_length) == 0;
  const auto to = has_peer ? from_socket_address(peer_as_any) : std::nullopt;
  if (!to) return Connected::kNot;
  return to->port == kDiscard ? Connected::kToNobody : Connected::kToSomebody;
}
// Of those at the UDP port of the link. -1: there is none.
inline int socket_of(const Port& port, Connected wanted = Connected::kNot) {
  for (int fd = 0; fd < kMostDescriptors; ++fd)
    if (connection_of(fd, port.info().udp_port) == wanted) return fd;
  return -1;
}

}  // namespace stp::port
