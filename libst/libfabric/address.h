// SPDX-License-Identifier: BSD-3-Clause
// Addresses, and the data of a connection request.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "libst/include/stp/managed.h"

namespace stp::fi {

// Addresses: IPv4 and a port, as a sockaddr_in. The port is an upper-layer port of the link.

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

// The data of a connection request, as private data of the managed API: the requester's address,
// then the program's data.

inline constexpr std::uint32_t kCmMagic = 0x53544649;  // "STFI"

struct CmHead {
  std::uint32_t magic, ipv4;  // in network order, as all fields
  std::uint16_t port, version;
};
static_assert(sizeof(CmHead) == 12);
inline constexpr std::uint16_t kCmVersion = 1;

inline std::vector<std::byte> pack_request(const sockaddr_in& own, const void* data,
                                           std::size_t length, std::uint32_t magic = kCmMagic) {
  const CmHead head{.magic = htonl(magic),
                    .ipv4 = own.sin_addr.s_addr,
                    .port = own.sin_port,
                    .version = htons(kCmVersion)};
  std::vector<std::byte> packed(sizeof head + length);
  std::memcpy(packed.data(), &head, sizeof head);
  if (length != 0) std::memcpy(packed.data() + sizeof head, data, length);
  return packed;
}

// The data that the peer of `connection` has sent.
inline std::vector<std::byte> cm_data_of(stm_connection_t connection) {
  std::vector<std::byte> data(STM_PRIVATE_DATA);
  const auto length = stm_private_data(connection, data.data(), data.size());
  data.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return data;
}

// Removes the header. nullopt: the requester is not an endpoint of this provider.
inline std::optional<sockaddr_in> unpack_request(std::vector<std::byte>& data,
                                                 std::uint32_t magic = kCmMagic) {
  CmHead head{};
  if (data.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, data.data(), sizeof head);
  if (head.magic != htonl(magic) || head.version != htons(kCmVersion)) return std::nullopt;
  data.erase(data.begin(), data.begin() + sizeof head);
  auto peer = make_address(0, 0);
  peer.sin_addr.s_addr = head.ipv4;
  peer.sin_port = head.port;
  return peer;
}

}  // namespace stp::fi
