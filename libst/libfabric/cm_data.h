// SPDX-License-Identifier: BSD-3-Clause
// The data of a connection request, as private data of the managed API: the requester's address,
// then the program's data.
#pragma once

#include <netinet/in.h>

#include <cstring>
#include <optional>
#include <vector>

#include "libst/include/stp/managed.h"
#include "libst/libfabric/address.h"

namespace stp::fi {

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
