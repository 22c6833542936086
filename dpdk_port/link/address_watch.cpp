// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/address_watch.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "dpdk_port/link/interface_addresses.h"

namespace stp::port {
namespace {

constexpr std::uint16_t kDiscard = 9;  // RFC 863

std::optional<Ipv4> ipv4_of(const sockaddr* address) {
  const auto found = address == nullptr ? std::nullopt : from_socket_address(address);
  return found ? found->ipv4() : std::nullopt;
}

}  // namespace

unsigned mtu_of(const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IF_NAMESIZE - 1);
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool known = fd >= 0 && ::ioctl(fd, SIOCGIFMTU, &request) == 0;
  if (fd >= 0) ::close(fd);
  return known ? static_cast<unsigned>(request.ifr_mtu) : 0;
}

unsigned most_mtu() {
  unsigned most = 0;
  for (const auto* at : AllAddresses())
    if ((at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0)
      most = std::max(most, mtu_of(at->ifa_name));
  return most;
}

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

// Connecting a socket sends no packet.
std::optional<InternetAddress> usual_address(int family) {
  auto elsewhere = InternetAddress::of(Ipv4{0xc0000201}, kDiscard);  // 192.0.2.1: RFC 5737
  if (family == AF_INET6) elsewhere = parse_internet_address("2001:db8::1").value();  // RFC 3849
  elsewhere.port = kDiscard;
  sockaddr_storage name{};
  const int used = family == AF_INET6 ? AF_INET6 : AF_INET;
  socklen_t length = to_socket_address(elsewhere, used, name);
  const int fd = ::socket(used, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  auto* const as_any = reinterpret_cast<sockaddr*>(&name);
  const bool known = fd >= 0 && ::connect(fd, as_any, length) == 0 &&
                     ::getsockname(fd, as_any, &(length = sizeof name)) == 0;
  if (fd >= 0) ::close(fd);
  if (known) return from_socket_address(as_any);
  std::optional<InternetAddress> loopback;
  for (const auto* at : AllAddresses()) {
    if ((at->ifa_flags & IFF_UP) == 0) continue;
    const auto found = from_socket_address(at->ifa_addr);
    if (!found || !found->is_host() || found->scope != 0) continue;
    if (family != AF_UNSPEC && found->ipv4().has_value() != (family == AF_INET)) continue;
    if (!found->is_loopback()) return found;
    if (!loopback) loopback = found;
  }
  return loopback;
}

bool HostAddresses::has(const InternetAddress& address, unsigned interface, Time now) {
  // What is told while the list is read is news the next time.
  const bool changed = news_.look([](int) { return true; }, now);
  if (changed || !known_) read();
  InternetAddress wanted = address;
  wanted.port = 0;
  auto at = std::ranges::lower_bound(all_, std::pair(wanted, interface));
  return at != all_.end() && at->first == wanted && (interface == 0 || at->second == interface);
}

void HostAddresses::read() {
  const AllAddresses all;
  known_ = all.are_known();
  if (!known_) return;
  all_.clear();
  const char* name = "";
  unsigned index = 0;
  for (const auto* at : all) {
    const auto found = from_socket_address(at->ifa_addr);
    if (!found) continue;
    if (std::strcmp(name, at->ifa_name) != 0) index = ::if_nametoindex(name = at->ifa_name);
    all_.emplace_back(*found, index);
  }
  std::ranges::sort(all_);
}

AddressWatch::AddressWatch(LinkConfig config) : config_(std::move(config)) {
  std::string target = config_.target;
  if (target.starts_with('[') && target.ends_with(']'))
    target = target.substr(1, target.size() - 2);
  address_ = parse_internet_address(target);
  const auto percent = target.find('%');
  if (percent != std::string::npos)
    interface_ = target.substr(percent + 1);
  else if (!address_)
    interface_ = target;
  ask();
}

bool AddressWatch::look(Time now) {
  if (config_.target.empty() || now < look_at_) return false;
  look_at_ = now + kInterval;
  if (!news_.look([](int) { return true; }, now)) return false;
  const auto state = [this] { return absence_ ? absence_->state : LinkState::kUp; };
  const auto before = std::pair(state(), index_);
  ask();
  return std::pair(state(), index_) != before;
}

void AddressWatch::ask() {
  index_ = interface_.empty() ? 0 : ::if_nametoindex(interface_.c_str());
  absence_ = absence_now();
}

std::optional<Absence> AddressWatch::absence_now() const {
  if (config_.target.empty() || (address_ && address_->is_unspecified())) return std::nullopt;
  if (auto missing = absence_of(config_)) return missing;
  // An address that no interface has may be one of a whole network of this host, as 127.0.0.2 is.
  const std::string interface = interface_.empty() ? interface_with(*address_) : interface_;
  if (interface.empty()) return std::nullopt;
  const InterfaceWatch watch(interface);
  if (auto missing = absence_of(interface, watch.facts())) return missing;
  if (watch.state() != LinkState::kNoCarrier) return std::nullopt;
  return Absence{LinkState::kNoCarrier,
                 interface + " has no carrier: check the cable, and that the other end is up"};
}

}  // namespace stp::port
