// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/interface_news.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace stp::port {
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

}  // namespace stp::port
