// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/internet_address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "dpdk_port/link/interface_addresses.h"

namespace stp::port {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

InternetAddress InternetAddress::of(Ipv4 address, std::uint16_t port) {
  InternetAddress out;
  std::ranges::copy(kMapped, out.ip.begin());
  for (std::size_t i = 0; i < 4; ++i)
    out.ip[12 + i] = static_cast<std::uint8_t>(address.value >> (24 - 8 * i));
  out.port = port;
  return out;
}

std::optional<Ipv4> InternetAddress::ipv4() const {
  if (!std::equal(kMapped.begin(), kMapped.end(), ip.begin())) return std::nullopt;
  std::uint32_t value = 0;
  for (std::size_t i = 12; i < ip.size(); ++i) value = value << 8 | ip[i];
  return Ipv4{value};
}

bool InternetAddress::is_unspecified() const {
  if (const auto four = ipv4()) return four->value == 0;
  return std::ranges::all_of(ip, [](std::uint8_t octet) { return octet == 0; });
}

bool InternetAddress::is_loopback() const {
  if (const auto four = ipv4()) return four->value >> 24 == IN_LOOPBACKNET;
  return ip.back() == 1 &&
         std::all_of(ip.begin(), ip.end() - 1, [](std::uint8_t octet) { return octet == 0; });
}

bool InternetAddress::is_link_local() const {
  return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

bool InternetAddress::is_host() const {
  if (is_unspecified()) return false;
  // 0.0.0.0/8 is "this network"; groups and what was once reserved begin at 224.0.0.0.
  if (const auto four = ipv4()) return four->value >> 24 != 0 && four->value >> 29 != 7;
  return ip[0] != 0xff && (!is_link_local() || scope != 0);
}

std::optional<InternetAddress> parse_internet_address(const std::string& text) {
  if (const auto four = parse_ipv4(text)) return InternetAddress::of(*four, 0);
  InternetAddress out;
  const std::size_t percent = text.find('%');
  if (::inet_pton(AF_INET6, text.substr(0, percent).c_str(), out.ip.data()) != 1)
    return std::nullopt;
  if (percent == std::string::npos) return out;
  out.scope = static_cast<std::uint32_t>(index_of_interface(text.substr(percent + 1)));
  if (out.scope == 0 || !out.is_link_local()) return std::nullopt;
  return out;
}

std::string host_of(const InternetAddress& address) {
  if (const auto four = address.ipv4()) return to_string(*four);
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, address.ip.data(), text.data(), text.size());
  std::array<char, IF_NAMESIZE> interface {};
  std::string scope;
  if (address.scope != 0)
    scope = std::string("%") + (::if_indextoname(address.scope, interface.data()) != nullptr
                                    ? std::string(interface.data())
                                    : std::to_string(address.scope));
  return text.data() + scope;
}

std::string to_string(const InternetAddress& address) {
  const std::string host = host_of(address);
  const std::string port = address.port == 0 ? "" : "/" + std::to_string(address.port);
  return (address.ipv4() ? host : "[" + host + "]") + port;
}

std::optional<InternetAddress> from_socket_address(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in four;
    std::memcpy(&four, address, sizeof four);
    return InternetAddress::of(Ipv4{ntohl(four.sin_addr.s_addr)}, ntohs(four.sin_port));
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 six;
  std::memcpy(&six, address, sizeof six);
  InternetAddress out;
  std::memcpy(out.ip.data(), &six.sin6_addr, out.ip.size());
  out.port = ntohs(six.sin6_port);
  // Other addresses need no interface, so theirs must not depend on it.
  if (out.is_link_local()) out.scope = six.sin6_scope_id;
  return out;
}

socklen_t to_socket_address(const InternetAddress& address, int family, sockaddr_storage& out) {
  if (family == AF_INET) {
    const auto four = address.ipv4();
    if (!four) return 0;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(four->value);
    to.sin_port = htons(address.port);
    std::memcpy(&out, &to, sizeof to);
    return sizeof to;
  }
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  std::memcpy(&to.sin6_addr, address.ip.data(), address.ip.size());
  to.sin6_port = htons(address.port);
  to.sin6_scope_id = address.scope;
  std::memcpy(&out, &to, sizeof to);
  return sizeof to;
}

}  // namespace stp::port
