// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/absence.h"

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "dpdk_port/link/interfaces.h"
#include "stp/base/mutex.h"

namespace stp::port {
namespace {

// Whether a socket can be bound to it says more than a list of addresses: the kernel permits one of
// IPv6 only when it knows that nobody else has it. `interface`: of a socket that is bound to that.
bool is_of_this_host(const InternetAddress& address, const std::string& interface = "") {
  const int family = address.ipv4() ? AF_INET : AF_INET6;
  const int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;  // something else is missing
  if (!interface.empty())
    ::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface.data(),
                 static_cast<socklen_t>(interface.size()));
  InternetAddress any_port = address;
  any_port.port = 0;
  sockaddr_storage name{};
  const socklen_t length = to_socket_address(any_port, family, name);
  const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&name), length) == 0;
  const int error = errno;
  ::close(fd);
  return bound || error != EADDRNOTAVAIL;
}

bool has_brackets(const std::string& target) {
  return target.starts_with('[') && target.ends_with(']');
}

// nullopt: it is an interface.
std::optional<InternetAddress> address_in(const std::string& target) {
  return parse_internet_address(has_brackets(target) ? target.substr(1, target.size() - 2)
                                                     : target);
}

// Linux has no IPv6 on an interface whose packets are too short for it. "": there is none.
std::string too_short_for_ipv6() {
  constexpr unsigned kLeast = 1280;  // RFC 8200
  for (const KernelInterface& at : ask_for_interfaces()) {
    if (at.mtu == 0 || at.mtu >= kLeast) continue;
    return "; " + at.name + " has an MTU of " + std::to_string(at.mtu) +
           ", and IPv6 needs 1280 (ip link set " + at.name + " mtu 1280, and then add the address)";
  }
  return "";
}

std::string text_of_absent(const InternetAddress& address) {
  const auto vrf = hint_at_vrf(address);
  if (!vrf.empty()) return host_of(address) + vrf;
  return "no interface of this host has the address " + host_of(address) +
         ": the link waits for it ('ip address' lists them, 'ip address add' adds it)" +
         (address.ipv4() ? "" : too_short_for_ipv6());
}

std::optional<Absence> absence_of_udp(const std::string& target) {
  if (target.empty()) return std::nullopt;
  const bool brackets = has_brackets(target);
  const auto address = address_in(target);
  if (address) {
    if (!address->is_host() || is_of_this_host(*address)) return std::nullopt;
    return Absence{LinkState::kGone, text_of_absent(*address)};
  }
  // [fe80::1%eth0] of an interface that is not there is no address.
  const auto percent = target.find('%');
  const std::string interface = brackets && percent != std::string::npos
                                    ? target.substr(percent + 1, target.size() - percent - 2)
                                    : target;
  if (index_of_zone(interface) != 0) return std::nullopt;
  return absence_of(interface, {});
}

std::optional<Absence> absence_of_folder(const std::string& socket) {
  const auto folder = std::filesystem::path(socket).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::exists(folder, error) || error) return std::nullopt;
  return Absence{LinkState::kGone, "there is no directory " + folder.string() +
                                       " for the socket: the link waits for it (mkdir)"};
}

}  // namespace

// Who has such an interface in mind seldom thinks of it: sockets that are bound to no interface
// have the addresses of those that belong to no VRF.
std::string hint_at_vrf(const InternetAddress& address) {
  for (const auto* at : AllAddresses()) {
    const auto found = from_socket_address(at->ifa_addr);
    if (!found || found->ip != address.ip || !is_of_this_host(address, at->ifa_name)) continue;
    return std::string(" is an address of ") + at->ifa_name + ", which belongs to a VRF: name " +
           at->ifa_name + " in its place";
  }
  return "";
}

std::string unfit_here(const LinkConfig& link) {
  const auto address = is_internet(link.kind) ? address_in(link.target) : std::nullopt;
  if (!address) return "";
  const std::string interface = interface_with_broadcast(*address);
  return interface.empty()
             ? ""
             : "'" + link.target + "' is the address of all hosts of the network of " + interface +
                   ": name that of this host ('ip address' lists them)";
}

std::optional<Absence> absence_of(const LinkConfig& link) {
  switch (link.kind) {
    case LinkKind::kIface:
      if (link.driver == IfaceDriver::kAfXdp) return std::nullopt;
      return absence_of(link.target);
    case LinkKind::kUdp:
    case LinkKind::kIp:
      return absence_of_udp(link.target);
    case LinkKind::kMemif:
      if (link.role != MemifRole::kServer) return std::nullopt;
      return absence_of_folder(link.target);
    case LinkKind::kStpd:
    case LinkKind::kPci:
    case LinkKind::kVdev:
    case LinkKind::kLoop:
      break;
  }
  return std::nullopt;
}

AddressWatch::AddressWatch(LinkConfig config) : config_(std::move(config)) {
  std::string target = config_.target;
  if (target.starts_with('[') && target.ends_with(']'))
    target = target.substr(1, target.size() - 2);
  address_ = parse_internet_address(target);
  const auto percent = target.find('%');
  std::array<char, IF_NAMESIZE> name{};
  if (address_ && address_->scope != 0 && ::if_indextoname(address_->scope, name.data()) != nullptr)
    interface_ = name.data();
  else if (percent != std::string::npos)
    interface_ = target.substr(percent + 1);
  else if (!address_)
    interface_ = target;
  ask();
}

bool AddressWatch::look(Time now) {
  if (config_.target.empty() || now < look_at_) return false;
  look_at_ = now + kInterval;
  if (!news_.look([](int) { return true; }, now)) return false;
  const auto all = [this] {
    return std::tuple(absence_ ? absence_->state : LinkState::kUp,
                      absence_ ? absence_->trouble : "", index_);
  };
  const auto before = all();
  ask();
  return all() != before;
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

namespace {

struct Kept {
  int fd;
  bool used;
};

struct PacketSockets {
  Mutex mutex;
  std::vector<Kept> kept STP_GUARDED_BY(mutex);
};

PacketSockets& packet_sockets() {
  static PacketSockets all;
  return all;
}

int new_packet_socket() {
  return ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// As it was when it was opened.
void clear(int fd) {
  const sockaddr_ll nowhere{.sll_family = AF_PACKET,
                            .sll_protocol = 0,
                            .sll_ifindex = 0,
                            .sll_hatype = 0,
                            .sll_pkttype = 0,
                            .sll_halen = 0,
                            .sll_addr = {}};
  [[maybe_unused]] const int bound =
      ::bind(fd, reinterpret_cast<const sockaddr*>(&nowhere), sizeof nowhere);
  const tpacket_req none{};
  ::setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &none, sizeof none);
  ::setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &none, sizeof none);
}

}  // namespace

bool keep_packet_socket(std::string& error) {
  const int fd = new_packet_socket();
  if (fd < 0) {
    error = errno == EPERM ? "this user lacks CAP_NET_RAW"
                           : std::string("a packet socket does not open: ") + std::strerror(errno);
    return false;
  }
  PacketSockets& all = packet_sockets();
  const Lock lock(all.mutex);
  all.kept.push_back({fd, false});
  return true;
}

bool may_open_packet_sockets() {
  {
    PacketSockets& all = packet_sockets();
    const Lock lock(all.mutex);
    if (std::ranges::any_of(all.kept, [](const Kept& one) { return !one.used; })) return true;
  }
  const int fd = new_packet_socket();
  if (fd < 0) return false;
  ::close(fd);
  return true;
}

int open_packet_socket() {
  if (const int fd = new_packet_socket(); fd >= 0 || errno != EPERM) return fd;
  PacketSockets& all = packet_sockets();
  const Lock lock(all.mutex);
  for (Kept& one : all.kept) {
    if (std::exchange(one.used, true)) continue;
    return one.fd;
  }
  errno = EPERM;
  return -1;
}

void close_packet_socket(int fd) {
  PacketSockets& all = packet_sockets();
  const Lock lock(all.mutex);
  const auto kept = std::ranges::find(all.kept, fd, &Kept::fd);
  if (kept == all.kept.end()) {
    ::close(fd);
    return;
  }
  clear(fd);
  kept->used = false;
}

}  // namespace stp::port
