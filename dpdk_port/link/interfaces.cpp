// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/interfaces.h"

#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "stp/base/mutex.h"

namespace stp::port {
namespace {

std::string why_no_raw_socket(int error) {
  return error == EPERM ? "this user lacks CAP_NET_RAW: run as root, or give the program the "
                          "capability with setcap cap_net_raw+ep"
                        : std::string("raw sockets do not open: ") + std::strerror(error);
}

bool may_open_raw_sockets(std::string& error) {
  if (may_open_packet_sockets()) return true;
  error = why_no_raw_socket(errno);
  return false;
}

}  // namespace

std::optional<Ipv4> first_address(const std::string& name, int index) {
  if (const auto all = ipv4_addresses(index)) {
    for (const InterfaceAddress& each : *all) {
      if (each.index == index) return Ipv4{each.ipv4};
    }
    return std::nullopt;
  }
  ifreq answer{};
  if (!InterfaceSocket().ask(SIOCGIFADDR, name, answer)) return std::nullopt;
  sockaddr_in address;
  std::memcpy(&address, &answer.ifr_addr, sizeof address);
  return Ipv4{ntohl(address.sin_addr.s_addr)};
}

bool look_up_interface(const std::string& any_name, InterfaceFacts& out, std::string& error) {
  const std::string name = name_of_interface(any_name);
  const auto found = ask_for_interface(name);
  if (found.index == 0) {
    error =
        errno == ENODEV ? "there is no such interface: 'ip link' lists them" : std::strerror(errno);
    return false;
  }
  if (found.has(IFF_LOOPBACK)) {
    error = "frames on it have no addresses: for this host alone use the link 'loop'";
    return false;
  }
  if (!found.has(IFF_UP)) {
    error = "the interface is down: ip link set " + name + " up";
    return false;
  }
  if (found.type != ARPHRD_ETHER) {
    error = "this is no Ethernet interface: choose one that 'ip link' shows with link/ether";
    return false;
  }
  if (found.mtu == 0) {
    error = std::string("its MTU cannot be read: ") + std::strerror(errno);
    return false;
  }
  out = {found.mac, found.mtu, first_address(name, found.index)};
  return may_open_raw_sockets(error);
}

namespace {

// Messages read per call: on a host where interfaces change all the time the rest waits.
constexpr unsigned kAtOnce = 16;

int news_of_interfaces() {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (fd < 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return fd;
  }
  ::close(fd);
  return -1;
}

// The interface of a message; 0: none.
int index_of(const nlmsghdr& message) {
  const bool is_link = message.nlmsg_type == RTM_NEWLINK || message.nlmsg_type == RTM_DELLINK;
  const bool is_address = message.nlmsg_type == RTM_NEWADDR || message.nlmsg_type == RTM_DELADDR;
  if (is_link && message.nlmsg_len >= NLMSG_LENGTH(sizeof(ifinfomsg))) {
    return static_cast<const ifinfomsg*>(NLMSG_DATA(&message))->ifi_index;
  }
  if (is_address && message.nlmsg_len >= NLMSG_LENGTH(sizeof(ifaddrmsg))) {
    return static_cast<int>(static_cast<const ifaddrmsg*>(NLMSG_DATA(&message))->ifa_index);
  }
  return 0;
}

bool concern(const std::function<bool(int)>& concerns, const void* messages, std::size_t size) {
  auto left = static_cast<unsigned>(size);
  for (auto* at = static_cast<const nlmsghdr*>(messages); NLMSG_OK(at, left);
       at = NLMSG_NEXT(at, left)) {
    const int index = index_of(*at);
    if (index != 0 && concerns(index)) return true;
  }
  return false;
}

}  // namespace

InterfaceNews::InterfaceNews() : fd_(news_of_interfaces()) {}

InterfaceNews::~InterfaceNews() {
  if (fd_ >= 0) ::close(fd_);
}

bool InterfaceNews::look(const std::function<bool(int)>& concerns, Time now) {
  if (fd_ >= 0) return told(concerns);
  if (now < ask_at_) return false;
  ask_at_ = now + kInterval;
  return true;
}

bool InterfaceNews::told(const std::function<bool(int)>& concerns) const {
  bool any = false;
  alignas(nlmsghdr) std::array<char, 8192> messages;
  for (unsigned i = 0; i < kAtOnce; ++i) {
    const ssize_t size = ::recv(fd_, messages.data(), messages.size(), MSG_DONTWAIT | MSG_TRUNC);
    // ENOBUFS: messages were lost.
    if (size < 0) return any || errno == ENOBUFS;
    any |= static_cast<std::size_t>(size) > messages.size() ||
           concern(concerns, messages.data(), static_cast<std::size_t>(size));
  }
  return true;  // more may follow: counts as news
}

InterfaceWatch::InterfaceWatch(std::string name) : name_(std::move(name)) {
  ask();
}

// While the interface is absent, any new one may be it.
bool InterfaceWatch::look(Time now) {
  const auto concerns = [this](int index) { return index == facts_.index || facts_.index == 0; };
  is_old_ |= news_.look(concerns, now);
  auto answer = asking_.take();
  if (answer && std::exchange(is_outdated_, false)) answer.reset();
  if (answer && !*answer) is_old_ = true;  // it is asked again
  const bool changed = answer && *answer && std::exchange(facts_, **answer) != **answer;
  if (is_old_ && !asking_.is_asked() && now >= ask_at_) {
    is_old_ = false;
    ask_at_ = now + kInterval;
    before_ = facts_;
    asking_.begin();
  }
  return changed;
}

// The answer to an earlier question, which may still come, is older than this one.
void InterfaceWatch::ask() {
  is_outdated_ = asking_.is_asked();
  is_old_ = false;
  facts_ = found(facts_);
}

InterfaceWatch::Facts InterfaceWatch::found(const Facts& before) const {
  const std::string name = name_of_interface(name_);
  const auto found = socket_.look_up(name);
  Facts now;
  now.index = found.index;
  now.up = found.has(IFF_UP);
  now.running = found.has(IFF_UP | IFF_RUNNING);
  now.mtu = found.mtu;
  now.mac = found.mac;
  if (now.index != 0) now.address = first_address(name, now.index);
  // The kernel takes a lock to answer this. A line does not change its speed while it runs.
  const bool runs_on = before.running && before.index == now.index;
  if (now.running) now.megabits = runs_on ? before.megabits : ask_speed(name);
  return now;
}

// `command`: of ethtool's, which gets the answer. False: none.
bool InterfaceWatch::ask_driver(const std::string& name, void* command) const {
  ifreq question{};
  question.ifr_data = static_cast<char*>(command);
  return socket_.ask(SIOCETHTOOL, name, question);
}

// The kernel names 10 Gbit/s for interfaces that lead to no line.
bool InterfaceWatch::has_no_line(const std::string& name) const {
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (!ask_driver(name, &driver)) return false;
  const std::string_view known(driver.driver);
  return known == "veth" || known == "tun";
}

unsigned InterfaceWatch::ask_speed(const std::string& name) const {
  ethtool_cmd answer{};
  answer.cmd = ETHTOOL_GSET;
  if (!ask_driver(name, &answer) || has_no_line(name)) return 0;
  const unsigned speed = ethtool_cmd_speed(&answer);
  return speed == static_cast<unsigned>(SPEED_UNKNOWN) ? 0 : speed;
}

LinkState InterfaceWatch::state() const {
  if (facts_.index == 0) return LinkState::kGone;
  if (!facts_.up) return LinkState::kDown;
  return facts_.running ? LinkState::kUp : LinkState::kNoCarrier;
}

void HostAddresses::look(Time now) {
  // What is told while the list is read is news the next time.
  is_old_ |= news_.look([](int) { return true; }, now);
  const auto note = [this, now](std::optional<List> found) {
    if (!found) return;
    if (*found) {
      all_ = std::move(*found);
    } else {  // the kernel had no memory, or the program no descriptor: it is asked again
      is_old_ = true;
      ask_at_ = now + kPatience;
    }
  };
  note(asking_.take());
  if ((is_old_ || !all_) && !asking_.is_asked() && now >= ask_at_) {
    is_old_ = false;
    asking_.begin();
    note(asking_.take(all_ ? kPatience : kFirst));
  }
}

bool HostAddresses::has(const InternetAddress& address, unsigned interface, Time now) {
  look(now);
  InternetAddress wanted = address;
  wanted.port = 0;
  if (!all_) return false;
  const auto& addresses = all_->addresses;
  const auto at = std::ranges::lower_bound(addresses, std::pair(wanted, interface));
  return at != addresses.end() && at->first == wanted &&
         (interface == 0 || at->second == interface);
}

std::optional<unsigned> HostAddresses::index_of(const std::string& zone, Time now) {
  using Name = std::pair<std::string, unsigned>;
  look(now);
  if (!all_ && asking_.is_asked()) return std::nullopt;
  if (!all_) return zone.size() < IFNAMSIZ ? ::if_nametoindex(zone.c_str()) : 0;
  const auto& names = all_->names;
  const auto named = std::ranges::lower_bound(names, zone, {}, &Name::first);
  if (named != names.end() && named->first == zone) return named->second;
  unsigned index = 0;
  const char* const end = zone.data() + zone.size();
  const auto [stop, failure] = std::from_chars(zone.data(), end, index);
  const bool is_number = failure == std::errc{} && stop == end;
  return is_number && std::ranges::find(names, index, &Name::second) != names.end() ? index : 0;
}

HostAddresses::List HostAddresses::read() {
  const AllAddresses all;
  auto names = names_of_interfaces();
  if (!all.are_known() || !names) return std::nullopt;
  Lists lists{.addresses = {}, .names = std::move(*names)};
  const char* name = "";
  unsigned index = 0;
  for (const auto* at : all) {
    const auto found = from_socket_address(at->ifa_addr);
    if (!found) continue;
    if (std::strcmp(name, at->ifa_name) != 0) index = ::if_nametoindex(name = at->ifa_name);
    lists.addresses.emplace_back(*found, index);
  }
  std::ranges::sort(lists.addresses);
  std::ranges::sort(lists.names);
  return lists;
}

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

std::string text_of_absent(const InternetAddress& address) {
  const auto vrf = hint_at_vrf(address);
  if (!vrf.empty()) return host_of(address) + vrf;
  return "no interface of this host has the address " + host_of(address) +
         ": the link waits for it ('ip address' lists them, 'ip address add' adds it)" +
         hint_at_short_packets(address);
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

// Linux has no IPv6 there.
std::string hint_at_short_packets(const InternetAddress& address) {
  constexpr unsigned kLeast = 1280;  // RFC 8200
  if (address.ipv4()) return "";
  for (const KernelInterface& at : ask_for_interfaces()) {
    if (at.mtu == 0 || at.mtu >= kLeast) continue;
    return "; " + at.name + " has an MTU of " + std::to_string(at.mtu) +
           ", and IPv6 needs 1280 (ip link set " + at.name + " mtu 1280, and then add the address)";
  }
  return "";
}

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

// Of those that are up and have an address, but for the loopback one. "": there are several, or
// none.
static std::string only_interface() {
  std::string only;
  for (const ifaddrs* at : AllAddresses()) {
    const unsigned flags = at->ifa_flags;
    const bool leads_elsewhere = (flags & IFF_RUNNING) != 0 && (flags & IFF_LOOPBACK) == 0;
    if (!leads_elsewhere || !from_socket_address(at->ifa_addr) || only == at->ifa_name) continue;
    if (!only.empty()) return "";
    only = at->ifa_name;
  }
  return only;
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
  note(ask());
}

bool AddressWatch::look(Time now) {
  if (now < look_at_) return false;
  const bool asks_seldom = is_at_all_addresses() && !news_.is_reported();
  is_old_ |= news_.look([](int) { return true; }, now);
  auto found = asking_.take();
  if (found && !*found) is_old_ = true;  // it is asked again
  // Before the next question, which looks at the last answer.
  const bool changed = found && *found && note(std::move(**found));
  if (is_old_ && !asking_.is_asked() && now >= ask_at_) {
    is_old_ = false;
    ask_at_ = now + (asks_seldom ? kSeldom : kInterval);
    asking_.begin();
  }
  look_at_ = asking_.is_asked() ? now + kAnswer : asks_seldom ? ask_at_ : now + kInterval;
  return changed;
}

bool AddressWatch::note(Found found) {
  const auto all = [this] {
    return std::tuple(absence_ ? absence_->state : LinkState::kUp,
                      absence_ ? absence_->trouble : "", index_, own_, megabits_);
  };
  const auto before = all();
  absence_ = std::move(found.absence);
  index_ = found.index;
  own_ = found.own;
  has_way_ = found.has_way;
  megabits_ = found.megabits;
  return all() != before;
}

AddressWatch::Found AddressWatch::ask() const {
  Found found;
  found.index = interface_.empty() ? 0 : ::if_nametoindex(interface_.c_str());
  look_for_own(found);
  look_at_line(found);
  return found;
}

void AddressWatch::look_for_own(Found& found) const {
  if (address_ && !address_->is_unspecified()) return;
  // A raw socket has one of the families.
  const int family = address_ && !address_->ipv4() ? AF_INET6 : AF_INET;
  found.own = interface_.empty() ? usual_address(config_.kind == LinkKind::kIp ? family : AF_UNSPEC,
                                                 &found.has_way)
                                 : address_of(interface_);
  if (!own_) return;
  const bool is_lost = !found.own || (found.own->is_loopback() && !own_->is_loopback());
  if (!is_lost && (is_makeshift(found) || !is_there(*own_))) return;
  found.own = own_;
  found.has_way = has_way_ && is_there(*own_);
}

bool AddressWatch::is_makeshift(const Found& found) const {
  const bool lacked_ipv4 = !interface_.empty() && found.own->ipv4() && !own_->ipv4();
  return own_->is_loopback() || (found.has_way && !has_way_) || lacked_ipv4;
}

bool AddressWatch::is_there(const InternetAddress& own) const {
  const std::string at = interface_with(own);
  return !at.empty() && (interface_.empty() ||
                         ::if_nametoindex(at.c_str()) == ::if_nametoindex(interface_.c_str()));
}

void AddressWatch::look_at_line(Found& found) const {
  const bool any = is_at_all_addresses();
  if (!any) found.absence = absence_of(config_);
  if (found.absence) return;
  // An address that no interface has may be one of a whole network of this host, as 127.0.0.2 is.
  const std::string interface = any                  ? only_interface()
                                : interface_.empty() ? interface_with(*address_)
                                                     : interface_;
  if (interface.empty()) return;
  const InterfaceWatch watch(interface);
  found.megabits = watch.facts().megabits;
  if (any) return;
  found.absence = absence_of(interface, watch.facts());
  if (found.absence || watch.state() != LinkState::kNoCarrier) return;
  found.absence =
      Absence{LinkState::kNoCarrier,
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
    error = why_no_raw_socket(errno);
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
