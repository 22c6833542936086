// SPDX-License-Identifier: BSD-3-Clause
// Addresses: IPv4 and a port, as a sockaddr_in. The port is an upper-layer port of the link.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace stp::fi {

[[nodiscard]] inline sockaddr_in make_address(std::uint32_t ipv4, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(ipv4);
  address.sin_port = htons(port);
  return address;
}

// False: not such an address.
[[nodiscard]] inline bool read_address(const void* from, std::size_t length, sockaddr_in& out) {
  if (from == nullptr || length < sizeof out) return false;
  std::memcpy(&out, from, sizeof out);
  return out.sin_family == AF_INET;
}

// As in fi_getname: copies as much as fits; -FI_ETOOSMALL if that is not all.
inline int tell_address(const sockaddr_in& address, void* to, std::size_t* length) {
  if (length == nullptr) return -FI_EINVAL;
  const auto room = std::min(*length, sizeof address);
  if (room != 0 && to != nullptr) std::memcpy(to, &address, room);
  const auto fits = *length >= sizeof address;
  *length = sizeof address;
  return fits ? 0 : -FI_ETOOSMALL;
}

// "10.9.0.1:3000", as stm_connect names a peer.
[[nodiscard]] inline std::string peer_name(const sockaddr_in& address) {
  char host[INET_ADDRSTRLEN]{};
  ::inet_ntop(AF_INET, &address.sin_addr, host, sizeof host);
  return std::string(host).append(":").append(std::to_string(ntohs(address.sin_port)));
}

}  // namespace stp::fi
