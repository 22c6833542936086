// SPDX-License-Identifier: BSD-3-Clause
// What the kernel tells of interfaces when it is asked. By ioctl what each one is. As getifaddrs()
// has them all their addresses. By rtnetlink their IPv4 addresses, also those with a label
// (eth0:1), which ioctl and getifaddrs tell as if of another interface; and which one has an
// alternative name, of up to 127 characters. Needs no other source of the project.
#pragma once

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stp/types.h"

namespace stp::port {

// An interface of this network namespace, as the kernel knows it. What is mounted at /sys may be
// that of another namespace.
struct KernelInterface {
  std::string name;
  int index = 0;       // 0: there is no such interface
  unsigned flags = 0;  // IFF_UP, ...
  unsigned type = 0;   // ARPHRD_ETHER, ...; not of one without an address
  unsigned mtu = 0;    // bytes of the longest packet; 0: not known
  MacAddr mac;

  [[nodiscard]] bool has(unsigned all) const { return (flags & all) == all; }
};

// A socket for questions by ioctl.
class InterfaceSocket {
 public:
  InterfaceSocket() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~InterfaceSocket() {
    if (fd_ >= 0) ::close(fd_);
  }
  InterfaceSocket(const InterfaceSocket&) = delete;
  InterfaceSocket& operator=(const InterfaceSocket&) = delete;

  // `answer` may have what belongs to the question. False: see errno.
  bool ask(unsigned long what, const std::string& name, ifreq& answer) const {
    std::memset(answer.ifr_name, 0, sizeof answer.ifr_name);
    name.copy(answer.ifr_name, sizeof answer.ifr_name - 1);
    return ::ioctl(fd_, what, &answer) == 0;
  }
  // By the kernel's own name. If anything is missing, errno says why the last such thing is.
  [[nodiscard]] KernelInterface look_up(const std::string& name) const {
    KernelInterface out;
    out.name = name;
    ifreq answer{};
    if (!ask(SIOCGIFINDEX, name, answer)) return out;
    out.index = answer.ifr_ifindex;
    if (ask(SIOCGIFFLAGS, name, answer)) out.flags = static_cast<unsigned short>(answer.ifr_flags);
    if (ask(SIOCGIFHWADDR, name, answer)) {
      out.type = answer.ifr_hwaddr.sa_family;
      std::memcpy(out.mac.octets.data(), answer.ifr_hwaddr.sa_data, out.mac.octets.size());
    }
    if (ask(SIOCGIFMTU, name, answer)) out.mtu = static_cast<unsigned>(answer.ifr_mtu);
    return out;
  }

 private:
  int fd_;
};

// By the kernel's own name.
inline KernelInterface ask_for_interface(const std::string& name) {
  return InterfaceSocket().look_up(name);
}

inline unsigned mtu_of(const std::string& interface) {
  return ask_for_interface(interface).mtu;
}

// All of them, sorted by name.
inline std::vector<KernelInterface> ask_for_interfaces() {
  const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> names(
      ::if_nameindex(), &::if_freenameindex);
  const InterfaceSocket socket;
  std::vector<KernelInterface> all;
  for (const auto* each = names.get(); each != nullptr && each->if_index != 0; ++each) {
    all.push_back(socket.look_up(each->if_name));
    if (all.back().index == 0) all.pop_back();  // it has gone
  }
  std::ranges::sort(all, {}, &KernelInterface::name);
  return all;
}

// The MTU of the interface with the longest packets that is up, but for the loopback one; 0: none.
inline unsigned most_mtu() {
  unsigned most = 0;
  for (const KernelInterface& at : ask_for_interfaces())
    if (at.has(IFF_UP) && !at.has(IFF_LOOPBACK)) most = std::max(most, at.mtu);
  return most;
}

struct InterfaceAddress {
  int index = 0;           // of the interface
  std::uint32_t ipv4 = 0;  // host order
  unsigned prefix_length = 0;
};

namespace rtnetlink {

inline bool ask_for_addresses(int fd, int index) {
  // Kernels before 4.20 tell all addresses.
  const int strict = 1;
  ::setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &strict, sizeof strict);
  struct {
    nlmsghdr head;
    ifaddrmsg body;
  } request{};
  request.head.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof request.body));
  request.head.nlmsg_type = RTM_GETADDR;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.ifa_family = AF_INET;
  request.body.ifa_index = static_cast<unsigned>(index);
  return ::send(fd, &request, request.head.nlmsg_len, 0) ==
         static_cast<ssize_t>(request.head.nlmsg_len);
}

inline void read_address(const nlmsghdr& message, std::vector<InterfaceAddress>& out) {
  if (message.nlmsg_type != RTM_NEWADDR || message.nlmsg_len < NLMSG_LENGTH(sizeof(ifaddrmsg)))
    return;
  const auto* const body = static_cast<const ifaddrmsg*>(NLMSG_DATA(&message));
  if (body->ifa_family != AF_INET) return;
  InterfaceAddress found{
      .index = static_cast<int>(body->ifa_index), .ipv4 = 0, .prefix_length = body->ifa_prefixlen};
  auto left = static_cast<int>(IFA_PAYLOAD(&message));
  for (const rtattr* at = IFA_RTA(body); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
    // Of a connection between two hosts, IFA_ADDRESS is that of the other one.
    const bool own = at->rta_type == IFA_LOCAL || (at->rta_type == IFA_ADDRESS && found.ipv4 == 0);
    if (!own || RTA_PAYLOAD(at) < sizeof found.ipv4) continue;
    std::memcpy(&found.ipv4, RTA_DATA(at), sizeof found.ipv4);
    found.ipv4 = ntohl(found.ipv4);
  }
  if (found.ipv4 != 0) out.push_back(found);
}

// False: it was the last part, or `failed`.
inline bool read_part(int fd, std::vector<InterfaceAddress>& out, bool& failed) {
  alignas(nlmsghdr) std::array<char, 16'384> part;
  const ssize_t size = ::recv(fd, part.data(), part.size(), 0);
  if (size < 0 && errno == EINTR) return true;
  failed = size <= 0;
  auto left = static_cast<unsigned>(failed ? 0 : size);
  for (const auto* at = reinterpret_cast<const nlmsghdr*>(part.data()); NLMSG_OK(at, left);
       at = NLMSG_NEXT(at, left)) {
    if (at->nlmsg_type == NLMSG_DONE) return false;
    if (at->nlmsg_type == NLMSG_ERROR) failed = true;
    read_address(*at, out);
  }
  return !failed;
}

// Longer names can only be alternative ones.
inline constexpr std::size_t kMostOfName = IFNAMSIZ - 1, kMostOfAlternativeName = 127;

// 0: there is no such interface, or a kernel before 5.5.
inline int find_alternative_name(int fd, const std::string& name) {
  struct {
    nlmsghdr head;
    ifinfomsg body;
    rtattr attribute;
    std::array<char, kMostOfAlternativeName + 1> name;
  } request{};
  request.head.nlmsg_type = RTM_GETLINK;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.attribute.rta_type = IFLA_ALT_IFNAME;
  request.attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(name.size() + 1));
  name.copy(request.name.data(), kMostOfAlternativeName);
  request.head.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof request.body) +
                                                      RTA_ALIGN(request.attribute.rta_len));
  if (::send(fd, &request, request.head.nlmsg_len, 0) < 0) return 0;
  alignas(nlmsghdr) std::array<char, 16'384> answer;
  ssize_t size = 0;
  do {
    size = ::recv(fd, answer.data(), answer.size(), 0);
  } while (size < 0 && errno == EINTR);
  const auto* const message = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(ifinfomsg)))) return 0;
  if (message->nlmsg_type != RTM_NEWLINK) return 0;
  return static_cast<const ifinfomsg*>(NLMSG_DATA(message))->ifi_index;
}

}  // namespace rtnetlink

// The index of the interface with that name, which may be an alternative one. 0: there is none.
inline int index_of_interface(const std::string& name) {
  // The kernel takes eth0:1 for eth0 there.
  if (name.size() <= rtnetlink::kMostOfName && name.find(':') == std::string::npos)
    return static_cast<int>(::if_nametoindex(name.c_str()));
  if (name.size() > rtnetlink::kMostOfAlternativeName) return 0;
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return 0;
  const int index = rtnetlink::find_alternative_name(fd, name);
  ::close(fd);
  return index;
}

// What the kernel itself calls the interface. Without one: the name as it is, or, if that is too
// long for questions by ioctl, "".
inline std::string name_of_interface(const std::string& name) {
  std::array<char, IFNAMSIZ> own{};
  const int index = index_of_interface(name);
  if (index == 0 || ::if_indextoname(static_cast<unsigned>(index), own.data()) == nullptr)
    return name.size() <= rtnetlink::kMostOfName ? name : std::string();
  return own.data();
}

// In the kernel's order, the first one of each interface first. `index`: of that interface at
// least; 0: of all. nullopt: rtnetlink is not to be had (a sandbox may forbid it).
inline std::optional<std::vector<InterfaceAddress>> ipv4_addresses(int index = 0) {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return std::nullopt;
  std::vector<InterfaceAddress> all;
  bool failed = !rtnetlink::ask_for_addresses(fd, index);
  while (!failed && rtnetlink::read_part(fd, all, failed)) {
  }
  ::close(fd);
  if (failed) return std::nullopt;
  return all;
}

// Each address of each interface, of any family: for (const ifaddrs* at : AllAddresses()). None has
// no ifa_addr.
class AllAddresses {
 public:
  AllAddresses() {
    ifaddrs* list = nullptr;
    known_ = ::getifaddrs(&list) == 0;
    if (!known_) return;
    list_.reset(list);
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next)
      if (at->ifa_addr != nullptr) all_.push_back(at);
  }

  // False: the kernel does not tell them, so there are none here.
  [[nodiscard]] bool are_known() const { return known_; }
  [[nodiscard]] auto begin() const { return all_.begin(); }
  [[nodiscard]] auto end() const { return all_.end(); }

 private:
  bool known_ = false;
  std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list_{nullptr, &::freeifaddrs};
  std::vector<const ifaddrs*> all_;
};

}  // namespace stp::port
