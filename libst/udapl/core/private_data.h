// SPDX-License-Identifier: BSD-3-Clause
// What connection requests carry: the qualifier, and private data of DAT inside that of the managed
// API.
#pragma once

#include <stp/managed.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stp::udapl {

// Connection qualifiers have 64 bits, but upper-layer ports only 32. For a qualifier that is not a
// port, both sides compute a port, and the requester sends the qualifier along. Several qualifiers
// may map to one port.

[[nodiscard]] constexpr bool is_port(std::uint64_t conn_qual) {
  return conn_qual != 0 && conn_qual <= UINT32_MAX;
}

// Both sides compute it, so it is part of the wire protocol.
[[nodiscard]] constexpr std::uint32_t port_of(std::uint64_t conn_qual) {
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  constexpr std::uint32_t kHigh = std::uint32_t{1} << 31;
  if (is_port(conn_qual)) return static_cast<std::uint32_t>(conn_qual);
  return kHigh | static_cast<std::uint32_t>(conn_qual * kSpread >> 33);
}

// A header before the private data identifies the layer and the requester, which a DAT consumer may
// ask for.
inline constexpr std::size_t kPrivateHead = 8, kQualifierSize = 8;
inline constexpr std::size_t kMaxPrivateData = STM_PRIVATE_DATA - kPrivateHead - kQualifierSize;

struct PrivateData {
  std::uint32_t ipv4 = 0;                  // of the sender, host order; 0: none
  std::optional<std::uint64_t> conn_qual;  // the requested one, if it is not a port
  std::vector<std::byte> bytes;
};

std::vector<std::byte> pack(std::uint32_t ipv4, std::span<const std::byte> bytes);
// Packs the private data of a request for `conn_qual`.
std::vector<std::byte> pack_request(std::uint32_t ipv4, std::uint64_t conn_qual,
                                    std::span<const std::byte> bytes);
// nullopt: not sent by a DAT consumer.
std::optional<PrivateData> unpack(stm_connection_t connection);

// Information about a connection from the managed API; zeros if there is no connection.

inline stm_connection_info_t info_of(stm_connection_t connection) {
  stm_connection_info_t info{};
  info.size = sizeof info;
  if (connection == nullptr || stm_connection_query(connection, &info) != 0) return {};
  return info;
}

// The UDP port in the name of a host (10.0.0.5/9001); 0: none.
[[nodiscard]] std::uint16_t udp_port_in(const std::string& host);
// Of the peer of a connection; 0: the link is none over UDP. It may wait for stpd.
[[nodiscard]] std::uint16_t peer_udp_port_of(stm_connection_t connection);

}  // namespace stp::udapl
