// SPDX-License-Identifier: BSD-3-Clause
// Which peers count as one host, where a host has a bounded number of places.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "libst/include/stp/managed.h"

namespace stp::managed {

// `station`: the address of a peer (stm_peer_info). On a link over UDP a host can have as many UDP
// ports as it likes, and as many IPv6 addresses as its network has: all of an IPv4 address are one
// host, and all of the first 64 bits of an IPv6 address, except for link-local ones, which all
// begin alike.
inline std::string host_of_station(const std::string& station) {
  const std::string host = station.substr(0, station.rfind('/'));
  in6_addr six;
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  if (!brackets || ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six) != 1)
    return host;
  if (IN6_IS_ADDR_LINKLOCAL(&six)) return host;
  std::fill(std::begin(six.s6_addr) + 8, std::end(six.s6_addr), 0);
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, &six, text.data(), text.size());
  return std::string(text.data()) + "/64";
}

// Of a connection, or of a request for one. "": it has none any more.
inline std::string station_of(stm_connection_t connection) {
  stm_peer_info_t info{};
  info.size = sizeof info;
  return ::stm_peer_query(connection, &info) == 0 ? info.address : "";
}
inline std::string host_of(stm_connection_t connection) {
  return host_of_station(station_of(connection));
}

}  // namespace stp::managed
