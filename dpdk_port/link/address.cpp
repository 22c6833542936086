// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "dpdk_port/link/interfaces.h"

namespace stp::port {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

std::optional<Ipv4> parse_ipv4(const std::string& text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  std::uint32_t value = 0;
  for (int octet = 0; octet < 4; ++octet) {
    if (octet > 0 && (at == end || *at++ != '.')) return std::nullopt;
    unsigned part = 0;
    const auto [stop, failure] = std::from_chars(at, end, part);
    // Zeros in front are refused: some programs read "010" as eight.
    if (failure != std::errc{} || part > 255 || (stop - at > 1 && *at == '0')) return std::nullopt;
    at = stop;
    value = value << 8 | part;
  }
  if (at != end) return std::nullopt;
  return Ipv4{value};
}

std::string to_string(Ipv4 address) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (!text.empty()) text += '.';
    text += std::to_string(address.value >> shift & 0xff);
  }
  return text;
}

std::optional<MacAddr> parse_mac(const std::string& text) {
  constexpr std::size_t kLength = 6 * 3 - 1;
  if (text.size() != kLength) return std::nullopt;
  const char separator = text[2];
  if (separator != ':' && separator != '-') return std::nullopt;
  MacAddr mac;
  for (std::size_t i = 0; i < mac.octets.size(); ++i) {
    const char* const at = text.data() + 3 * i;
    if (i > 0 && at[-1] != separator) return std::nullopt;
    if (std::from_chars(at, at + 2, mac.octets[i], 16).ptr != at + 2) return std::nullopt;
  }
  return mac;
}

std::string to_string(const MacAddr& mac) {
  std::array<char, 18> text{};
  const auto& o = mac.octets;
  std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", o[0], o[1], o[2], o[3],
                o[4], o[5]);
  return text.data();
}

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

unsigned index_of_zone(const std::string& zone) {
  if (const int named = index_of_interface(zone); named != 0) return static_cast<unsigned>(named);
  unsigned index = 0;
  const char* const end = zone.data() + zone.size();
  const auto [stop, failure] = std::from_chars(zone.data(), end, index);
  std::array<char, IF_NAMESIZE> name{};
  const bool known = failure == std::errc{} && stop == end && index != 0 &&
                     ::if_indextoname(index, name.data()) != nullptr;
  return known ? index : 0;
}

std::optional<InternetAddress> parse_internet_address(const std::string& text) {
  if (const auto four = parse_ipv4(text)) return InternetAddress::of(*four, 0);
  InternetAddress out;
  const std::size_t percent = text.find('%');
  if (::inet_pton(AF_INET6, text.substr(0, percent).c_str(), out.ip.data()) != 1)
    return std::nullopt;
  if (percent == std::string::npos) return out;
  out.scope = index_of_zone(text.substr(percent + 1));
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

namespace {

constexpr std::uint16_t kDiscard = 9;  // RFC 863

std::optional<Ipv4> ipv4_of(const sockaddr* address) {
  const auto found = address == nullptr ? std::nullopt : from_socket_address(address);
  return found ? found->ipv4() : std::nullopt;
}

}  // namespace

std::string interface_with(const InternetAddress& address) {
  for (const auto* at : AllAddresses()) {
    auto found = from_socket_address(at->ifa_addr);
    if (!found) continue;
    found->port = address.port;
    if (*found == address) return at->ifa_name;
  }
  return "";
}

// The kernel makes the last address of an IPv4 network one of all its hosts, and one that an
// operator has set.
std::string interface_with_broadcast(const InternetAddress& address) {
  const auto wanted = address.ipv4();
  if (!wanted) return "";
  for (const auto* at : AllAddresses()) {
    const auto own = ipv4_of(at->ifa_addr), mask = ipv4_of(at->ifa_netmask);
    if (!own || !mask || (at->ifa_flags & IFF_BROADCAST) == 0 || *own == *wanted) continue;
    const bool has_last = ~mask->value > 1;  // two hosts need none
    if (has_last && wanted->value == (own->value | ~mask->value)) return at->ifa_name;
    if (ipv4_of(at->ifa_broadaddr) == wanted) return at->ifa_name;
  }
  return "";
}

std::optional<InternetAddress> address_of(const std::string& interface) {
  std::optional<InternetAddress> six;
  for (const auto* at : AllAddresses()) {
    if (interface != at->ifa_name) continue;
    const auto found = from_socket_address(at->ifa_addr);
    if (!found) continue;
    if (found->ipv4()) return found;
    if (!six && found->scope == 0) six = found;
  }
  return six;
}

namespace {

// Of packets of AF_INET or AF_INET6 to other networks. Connecting a socket sends no packet.
std::optional<InternetAddress> address_to_elsewhere(int family) {
  auto elsewhere = InternetAddress::of(Ipv4{0xc0000201}, kDiscard);  // 192.0.2.1: RFC 5737
  if (family == AF_INET6) elsewhere = parse_internet_address("2001:db8::1").value();  // RFC 3849
  elsewhere.port = kDiscard;
  sockaddr_storage name{};
  socklen_t length = to_socket_address(elsewhere, family, name);
  const int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  auto* const as_any = reinterpret_cast<sockaddr*>(&name);
  const bool known = fd >= 0 && ::connect(fd, as_any, length) == 0 &&
                     ::getsockname(fd, as_any, &(length = sizeof name)) == 0;
  if (fd >= 0) ::close(fd);
  return known ? from_socket_address(as_any) : std::nullopt;
}

// That of any interface which is up; one of a loopback interface only if there is no other.
std::optional<InternetAddress> address_of_any(int family) {
  std::optional<InternetAddress> loopback;
  for (const auto* at : AllAddresses()) {
    if ((at->ifa_flags & IFF_UP) == 0) continue;
    const auto found = from_socket_address(at->ifa_addr);
    if (!found || !found->is_host() || found->scope != 0) continue;
    if (found->ipv4().has_value() != (family == AF_INET)) continue;
    if (!found->is_loopback()) return found;
    if (!loopback) loopback = found;
  }
  return loopback;
}

}  // namespace

std::optional<InternetAddress> usual_address(int family, bool* has_way) {
  if (has_way != nullptr) *has_way = true;
  std::optional<InternetAddress> loopback;
  for (const int each : {AF_INET, AF_INET6}) {
    if (family != AF_UNSPEC && family != each) continue;
    const auto usual = address_to_elsewhere(each);
    if (usual && usual->scope == 0) return usual;
    const auto any = address_of_any(each);
    if (any && !any->is_loopback()) {
      if (has_way != nullptr) *has_way = false;
      return any;
    }
    if (!loopback) loopback = any;
  }
  if (has_way != nullptr) *has_way = false;
  return loopback;
}

}  // namespace stp::port
