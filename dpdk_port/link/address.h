// SPDX-License-Identifier: BSD-3-Clause
// Addresses: of IPv4, of Ethernet, and of either IP with a UDP port; their forms as text and for
// sockets; and which of them this host has, which is that of the network namespace of this process.
#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "stp/types.h"

namespace stp::port {

struct Ipv4 {
  std::uint32_t value = 0;  // host order
  friend auto operator<=>(const Ipv4&, const Ipv4&) = default;
};
std::optional<Ipv4> parse_ipv4(const std::string& text);
std::string to_string(Ipv4 address);
std::optional<MacAddr> parse_mac(const std::string& text);  // six octets, ':' or '-' between
std::string to_string(const MacAddr& mac);

// An IPv4 or IPv6 address with a UDP port, which is 0 where there are none.
struct InternetAddress {
  std::array<std::uint8_t, 16> ip{};  // an IPv4 address as ::ffff:10.0.0.5
  std::uint16_t port = 0;             // host order; 0: none
  std::uint32_t scope = 0;            // the interface of a link-local IPv6 address, by its index

  friend auto operator<=>(const InternetAddress&, const InternetAddress&) = default;

  static InternetAddress of(Ipv4 address, std::uint16_t port);
  [[nodiscard]] std::optional<Ipv4> ipv4() const;  // nullopt: it is IPv6
  [[nodiscard]] bool is_unspecified() const;       // 0.0.0.0 or ::
  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] bool is_link_local() const;  // fe80::/10
  // Whether one host can have it: no group, no broadcast address, not unspecified, and if it is
  // link-local, with its interface.
  [[nodiscard]] bool is_host() const;
};

// One of the addresses of this host, as in InternetAddress. All 0: the one that it usually has.
struct OwnAddress {
  std::array<std::uint8_t, 16> ip{};
  std::uint32_t scope = 0;
  friend bool operator==(const OwnAddress&, const OwnAddress&) = default;
};

// Of the interface that stands behind the % of an address, by its name or its number; 0: none.
unsigned index_of_zone(const std::string& zone);

// "10.0.0.5", "2001:db8::5", "fe80::1%eth0"; the port is 0.
std::optional<InternetAddress> parse_internet_address(const std::string& text);
// As it is written in names: 10.0.0.5/8181, [2001:db8::5]/8181; without a port only the host.
std::string to_string(const InternetAddress& address);
// Without the port.
std::string host_of(const InternetAddress& address);

// nullopt: another family.
std::optional<InternetAddress> from_socket_address(const sockaddr* address);
// For a socket of that family. Returns the length; 0: a socket for IPv4 reaches no IPv6 address.
socklen_t to_socket_address(const InternetAddress& address, int family, sockaddr_storage& out);

// ---- this host

// The interface that has the address, whatever its port; "": none.
std::string interface_with(const InternetAddress& address);

// The interface that all hosts of its network are reached at by that IPv4 address; "": none.
std::string interface_with_broadcast(const InternetAddress& address);

// The first IPv4 address of an interface, or its first IPv6 one that is not link-local.
std::optional<InternetAddress> address_of(const std::string& interface);

// The address that packets to other networks come from. Without a way to them, that of any
// interface. AF_UNSPEC: that of IPv4, if there is one but 127.0.0.1, else that of IPv6. nullopt:
// this host has none of the family. `has_way`: whether there is a way to them from it.
std::optional<InternetAddress> usual_address(int family = AF_UNSPEC, bool* has_way = nullptr);

}  // namespace stp::port
