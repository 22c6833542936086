// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/udp_socket.h"

#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dpdk_port/link/frame_buffers.h"
#include "dpdk_port/udp/peers.h"

namespace stp::port {
namespace {

// As much as a turn may be late for, at the rate of a fast network. Without privileges the kernel
// gives net.core.rmem_max at most.
constexpr int kSocketBuffer = 8 << 20;
constexpr unsigned kUsualIpMtu = 1500;
constexpr std::size_t kReportsAtOnce = 16;
// How often a call is made again while reports may be what makes it fail.
constexpr int kTries = 4;

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

void set_buffer(int fd, int forced, int usual) {
  const int size = kSocketBuffer;
  if (::setsockopt(fd, SOL_SOCKET, forced, &size, sizeof size) != 0)
    set_option(fd, SOL_SOCKET, usual, size);
}

unsigned mtu_of(const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IF_NAMESIZE - 1);
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool known = fd >= 0 && ::ioctl(fd, SIOCGIFMTU, &request) == 0;
  if (fd >= 0) ::close(fd);
  return known ? static_cast<unsigned>(request.ifr_mtu) : 0;
}

using InterfaceList = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

InterfaceList all_addresses() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) all = nullptr;
  return {all, &::freeifaddrs};
}

// "": no interface has it.
std::string interface_with(const InternetAddress& address) {
  const InterfaceList all = all_addresses();
  for (const auto* at = all.get(); at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    auto found = from_socket_address(at->ifa_addr);
    if (!found) continue;
    found->port = address.port;
    if (*found == address) return at->ifa_name;
  }
  return "";
}

// The first IPv4 address of an interface, or its first IPv6 one that is not link-local.
std::optional<InternetAddress> address_of(const std::string& interface) {
  const InterfaceList all = all_addresses();
  std::optional<InternetAddress> six;
  for (const auto* at = all.get(); at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || interface != at->ifa_name) continue;
    const auto found = from_socket_address(at->ifa_addr);
    if (!found) continue;
    if (found->ipv4()) return found;
    if (!six && found->scope == 0) six = found;
  }
  return six;
}

// The address that packets to other networks come from: connecting a socket sends none. Without
// such a way, that of any interface.
std::optional<InternetAddress> usual_address() {
  const auto elsewhere = InternetAddress::of(Ipv4{0xc0000201}, kUdpPort);  // 192.0.2.1: RFC 5737
  sockaddr_storage name{};
  socklen_t length = to_socket_address(elsewhere, AF_INET, name);
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  auto* const as_any = reinterpret_cast<sockaddr*>(&name);
  const bool known = fd >= 0 && ::connect(fd, as_any, length) == 0 &&
                     ::getsockname(fd, as_any, &(length = sizeof name)) == 0;
  if (fd >= 0) ::close(fd);
  if (known) return from_socket_address(as_any);
  std::optional<InternetAddress> loopback;
  const InterfaceList all = all_addresses();
  for (const auto* at = all.get(); at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const auto found = from_socket_address(at->ifa_addr);
    if (!found || !found->is_host() || found->scope != 0) continue;
    if (!found->is_loopback()) return found;
    if (!loopback) loopback = found;
  }
  return loopback;
}

// The errors that the kernel makes of ICMP messages, and of nothing that is wrong with a call.
bool may_be_reported(int error) {
  switch (error) {
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENOPROTOOPT:
    case ECONNREFUSED:
    case EMSGSIZE:
    case EOPNOTSUPP:
    case EHOSTDOWN:
    case ENONET:
    case EACCES:
    case EPROTO:
      return true;
    default:
      return false;
  }
}

std::string explain_bind(int error, const InternetAddress& to) {
  const std::string text = "cannot use " + to_string(to) + ": " + std::strerror(error);
  if (error == EADDRINUSE)
    return text +
           ": another program has this UDP port: name another one (port=), or 0 for a free one";
  if (error == EADDRNOTAVAIL)
    return text + ": no interface of this host has the address (ip address)";
  if (error == EACCES) return text + ": ports below 1024 are for root: name another one (port=)";
  return text;
}

}  // namespace

std::unique_ptr<UdpSocket> UdpSocket::open(const LinkConfig& config, std::string& error) {
  std::string target = config.target;
  if (target.starts_with('[') && target.ends_with(']'))
    target = target.substr(1, target.size() - 2);
  const auto address = parse_internet_address(target);
  const std::string interface = address ? "" : target;
  if (!interface.empty() && ::if_nametoindex(interface.c_str()) == 0) {
    error = "'" + config.target +
            "' is neither an address nor an interface of this host: after udp: stands 10.0.0.5, "
            "[2001:db8::5], an interface such as eth0, or nothing for all addresses";
    return nullptr;
  }
  const auto given = config.options.find("port");
  const auto port = static_cast<std::uint16_t>(
      given == config.options.end() ? kUdpPort : std::stoul(given->second));
  // One for both families reaches everybody.
  int family = address && address->ipv4() ? AF_INET : AF_INET6;
  int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 && errno == EAFNOSUPPORT && !address)
    fd = ::socket(family = AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    error = std::string("no UDP socket: ") + std::strerror(errno);
    return nullptr;
  }
  std::unique_ptr<UdpSocket> out(new UdpSocket(fd, family));
  if (address && !address->is_unspecified() && !address->is_host()) {
    error =
        "'" + config.target +
        "' is not the address of one host; a link-local one (fe80:...) needs its interface, as in "
        "[fe80::1%eth0]";
    return nullptr;
  }
  out->any_ = !address || address->is_unspecified();
  out->set_options();
  InternetAddress to = address.value_or(InternetAddress{});
  if (!address && family == AF_INET) to = InternetAddress::of(Ipv4{0}, 0);
  error = out->bind(config, to, port);
  if (error.empty()) error = out->find_longest(config, interface);
  return error.empty() ? std::move(out) : nullptr;
}

UdpSocket::~UdpSocket() {
  ::close(fd_);
}

// Each is an offer of the kernel: without it the link is slower, or tells less.
void UdpSocket::set_options() {
  set_buffer(fd_, SO_RCVBUFFORCE, SO_RCVBUF);
  set_buffer(fd_, SO_SNDBUFFORCE, SO_SNDBUF);
  int size = 0;
  socklen_t length = sizeof size;
  if (::getsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &size, &length) == 0)
    receive_bytes_ = static_cast<std::size_t>(size);
  // protocol: 13.6
  // Never fragments, and believes no report about the length of packets: anybody can forge one.
  set_option(fd_, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  if (family_ == AF_INET6) {
    set_option(fd_, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    set_option(fd_, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
  }
  mute(false, kNever);
  const int off = 0, on = 1;
  segments_ = ::setsockopt(fd_, IPPROTO_UDP, UDP_SEGMENT, &off, sizeof off) == 0;
  joins_ = ::setsockopt(fd_, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
}

std::string UdpSocket::bind(const LinkConfig& config, const InternetAddress& to,
                            std::uint16_t port) {
  const bool to_interface = any_ && !config.target.empty() &&
                            !parse_internet_address(config.target) &&
                            !config.target.starts_with('[');
  if (to_interface && ::setsockopt(fd_, SOL_SOCKET, SO_BINDTODEVICE, config.target.data(),
                                   static_cast<socklen_t>(config.target.size())) != 0)
    return "cannot be bound to the interface: " + std::string(std::strerror(errno)) +
           ": name its address instead";
  if (family_ == AF_INET6) set_option(fd_, IPPROTO_IPV6, IPV6_V6ONLY, any_ ? 0 : 1);
  InternetAddress wanted = to;
  wanted.port = port;
  sockaddr_storage name{};
  socklen_t length = to_socket_address(wanted, family_, name);
  auto* const as_any = reinterpret_cast<sockaddr*>(&name);
  if (::bind(fd_, as_any, length) != 0) return explain_bind(errno, wanted);
  length = sizeof name;
  if (::getsockname(fd_, as_any, &length) != 0) return std::strerror(errno);
  address_ = from_socket_address(as_any).value_or(wanted);
  if (!any_) return "";
  const auto own = to_interface ? address_of(config.target) : usual_address();
  if (own) {
    address_.ip = own->ip;
    address_.scope = own->scope;
  }
  return "";
}

// protocol: 13.5
std::string UdpSocket::find_longest(const LinkConfig& config, const std::string& interface) {
  unsigned mtu =
      config.mtu.value_or(mtu_of(interface.empty() ? interface_with(address_) : interface));
  if (mtu == 0) mtu = kUsualIpMtu;
  const unsigned headers = family_ == AF_INET ? kIpv4Headers : kIpv6Headers;
  longest_ = mtu > headers ? std::min<unsigned>(mtu - headers, kLongestDatagram) : 0;
  if (longest_ >= kMinMtu) return "";
  return "an MTU of " + std::to_string(mtu) + " is too short: STP over UDP needs " +
         std::to_string(kMinMtu + headers) + (family_ == AF_INET ? "" : " over IPv6");
}

void UdpSocket::count_too_long(std::size_t bytes, Time now) {
  ++errors_.too_long;
  long_ = {
      "a datagram of " + std::to_string(bytes) +
          " bytes is longer than the interface carries: raise its MTU, or open the link with a "
          "smaller mtu=",
      now};
}

void UdpSocket::count_refused(std::size_t datagrams, const InternetAddress& to, int error,
                              Time now) {
  errors_.refused += datagrams;
  std::string text = "cannot send to " + to_string(to) + ": " + std::strerror(error);
  if (error == EPERM) text += ": a firewall of this host forbids it";
  if (error == EACCES) text += ": it is the address of all hosts of a network";
  if (error == ENETUNREACH) text += ": no route leads there (ip route)";
  other_ = {std::move(text), now};
}

// Without these options an ICMP message changes nothing of a socket that is not connected.
void UdpSocket::mute(bool on, Time until) {
  muted_until_ = until;
  set_option(fd_, IPPROTO_IP, IP_RECVERR, on ? 0 : 1);
  if (family_ == AF_INET6) set_option(fd_, IPPROTO_IPV6, IPV6_RECVERR, on ? 0 : 1);
}

bool UdpSocket::is_of_earlier(int error, int tries, Time now) {
  if (error == EINTR) return true;
  if (!may_be_reported(error) || tries > kTries + 1) return false;
  const std::uint64_t before = errors_.reports;
  read_reports(now);
  if (tries < kTries) return true;
  if (muted_until_ == kNever) {
    if (errors_.reports != before) ++errors_.floods;
    mute(true, now + kMuted);
  }
  // Asking for the last one clears it. Another may just be on its way, so there are two more tries.
  int last = 0;
  socklen_t length = sizeof last;
  ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &last, &length);
  return true;
}

void UdpSocket::read_reports(Time now) {
  for (std::size_t count = 0; count < kReportsAtOnce; ++count) {
    alignas(cmsghdr) std::array<std::byte, 512> control;
    sockaddr_storage to{};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(fd_, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) break;
    note_report(message, now);
  }
}

// What is said about the very call that has failed is left out: it says so itself.
void UdpSocket::note_report(const msghdr& message, Time now) {
  const auto to = from_socket_address(static_cast<const sockaddr*>(message.msg_name));
  for (const cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr;
       at = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(at))) {
    const bool is_report = (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_RECVERR) ||
                           (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_RECVERR);
    if (!is_report || at->cmsg_len < CMSG_LEN(sizeof(sock_extended_err)) || !to) continue;
    sock_extended_err report;
    std::memcpy(&report, CMSG_DATA(at), sizeof report);
    if (report.ee_origin == SO_EE_ORIGIN_LOCAL) return;
    ++errors_.reports;
    const std::string whom = to_string(*to);
    const int error = static_cast<int>(report.ee_errno);
    if (error == EMSGSIZE) {
      const auto mtu = std::to_string(report.ee_info);
      long_ = {"the way to " + whom + " carries packets of " + mtu +
                   " bytes only: open the link with mtu=" + mtu,
               now};
    } else if (error == ECONNREFUSED) {
      other_ = {whom + " has no socket for that port: no udp: link is open there", now};
    } else {
      other_ = {"the way to " + whom + " reports: " + std::strerror(error), now};
    }
  }
}

std::string UdpSocket::trouble(Time now) const {
  std::string text;
  for (const Fault* fault : {&long_, &other_})
    if (is_told(*fault, now)) text += (text.empty() ? "" : "; ") + fault->text;
  return text;
}

}  // namespace stp::port
