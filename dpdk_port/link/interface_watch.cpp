// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/interface_watch.h"

#include <linux/ethtool.h>
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
#include <cstring>
#include <string_view>
#include <utility>

#include "dpdk_port/link/absence.h"

namespace stp::port {
namespace {

bool may_open_raw_sockets(std::string& error) {
  if (may_open_packet_sockets()) return true;
  error = errno == EPERM ? "this user lacks CAP_NET_RAW: run as root, or give the program the "
                           "capability with setcap cap_net_raw+ep"
                         : std::string("raw sockets do not open: ") + std::strerror(errno);
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
  return news_.look(concerns, now) && ask();
}

bool InterfaceWatch::ask() {
  const std::string name = name_of_interface(name_);
  const auto found = asking_.look_up(name);
  Facts now;
  now.index = found.index;
  now.up = found.has(IFF_UP);
  now.running = found.has(IFF_UP | IFF_RUNNING);
  now.mtu = found.mtu;
  now.mac = found.mac;
  if (now.index != 0) now.address = first_address(name, now.index);
  // The kernel takes a lock to answer this. A line does not change its speed while it runs.
  const bool runs_on = facts_.running && facts_.index == now.index;
  if (now.running) now.megabits = runs_on ? facts_.megabits : ask_speed(name);
  return std::exchange(facts_, now) != now;
}

// `command`: of ethtool's, which gets the answer. False: none.
bool InterfaceWatch::ask_driver(const std::string& name, void* command) const {
  ifreq question{};
  question.ifr_data = static_cast<char*>(command);
  return asking_.ask(SIOCETHTOOL, name, question);
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

}  // namespace stp::port
