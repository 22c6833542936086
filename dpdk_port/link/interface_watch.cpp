// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/interface_watch.h"

#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dpdk_port/link/interface.h"
#include "dpdk_port/link/ipv4_addresses.h"

namespace stp::port {
namespace {

// Messages read per call: on a host where interfaces change all the time the rest waits.
constexpr unsigned kAtOnce = 16;

int news_of_interfaces() {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR;
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

}  // namespace

InterfaceWatch::InterfaceWatch(std::string name)
    : name_(std::move(name)),
      asking_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
      news_(news_of_interfaces()) {
  ask();
}

InterfaceWatch::~InterfaceWatch() {
  if (asking_ >= 0) ::close(asking_);
  if (news_ >= 0) ::close(news_);
}

bool InterfaceWatch::look(Time now) {
  if (news_ >= 0) return told() && ask();
  if (now < ask_at_) return false;
  ask_at_ = now + kInterval;
  return ask();
}

bool InterfaceWatch::told() {
  bool any = false;
  alignas(nlmsghdr) std::array<char, 8192> messages;
  for (unsigned i = 0; i < kAtOnce; ++i) {
    const ssize_t size = ::recv(news_, messages.data(), messages.size(), MSG_DONTWAIT | MSG_TRUNC);
    // ENOBUFS: messages were lost.
    if (size < 0) return any || errno == ENOBUFS;
    any |= static_cast<std::size_t>(size) > messages.size() ||
           concerns_us(messages.data(), static_cast<std::size_t>(size));
  }
  return true;  // more may follow: counts as news
}

// While the interface is absent, any new one may be it.
bool InterfaceWatch::concerns_us(const void* messages, std::size_t size) const {
  auto left = static_cast<unsigned>(size);
  for (auto* at = static_cast<const nlmsghdr*>(messages); NLMSG_OK(at, left);
       at = NLMSG_NEXT(at, left)) {
    const int index = index_of(*at);
    if (index != 0 && (index == facts_.index || facts_.index == 0)) return true;
  }
  return false;
}

bool InterfaceWatch::ask() {
  const std::string name = name_of_interface(name_);
  ifreq answer{};
  name.copy(answer.ifr_name, sizeof answer.ifr_name - 1);
  const auto asked = [&](unsigned long what) { return ::ioctl(asking_, what, &answer) == 0; };
  Facts now;
  if (asked(SIOCGIFINDEX)) now.index = answer.ifr_ifindex;
  if (now.index != 0 && asked(SIOCGIFFLAGS)) {
    now.up = (answer.ifr_flags & IFF_UP) != 0;
    now.running = now.up && (answer.ifr_flags & IFF_RUNNING) != 0;
  }
  if (now.index != 0 && asked(SIOCGIFMTU)) now.mtu = static_cast<unsigned>(answer.ifr_mtu);
  if (now.index != 0 && asked(SIOCGIFHWADDR)) {
    std::memcpy(now.mac.octets.data(), answer.ifr_hwaddr.sa_data, now.mac.octets.size());
  }
  if (now.index != 0) now.address = first_address(name, now.index);
  // The kernel takes a lock to answer this. A line does not change its speed while it runs.
  const bool runs_on = facts_.running && facts_.index == now.index;
  if (now.running) now.megabits = runs_on ? facts_.megabits : ask_speed(name);
  return std::exchange(facts_, now) != now;
}

unsigned InterfaceWatch::ask_speed(const std::string& name) const {
  ethtool_cmd answer{};
  answer.cmd = ETHTOOL_GSET;
  ifreq question{};
  name.copy(question.ifr_name, sizeof question.ifr_name - 1);
  question.ifr_data = reinterpret_cast<char*>(&answer);
  if (::ioctl(asking_, SIOCETHTOOL, &question) != 0) return 0;
  const unsigned speed = ethtool_cmd_speed(&answer);
  return speed == static_cast<unsigned>(SPEED_UNKNOWN) ? 0 : speed;
}

LinkState InterfaceWatch::state() const {
  if (facts_.index == 0) return LinkState::kGone;
  if (!facts_.up) return LinkState::kDown;
  return facts_.running ? LinkState::kUp : LinkState::kNoCarrier;
}

}  // namespace stp::port
