// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/routes.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

namespace stp::port {
namespace {

// Which route a packet to `to` takes. Its attributes are those of the largest one there is: two
// addresses, an interface, a protocol and two ports.
struct Question {
  nlmsghdr head;
  rtmsg body;
  std::array<std::byte, 2 * RTA_SPACE(16) + 2 * RTA_SPACE(4) + 2 * RTA_SPACE(2)> attributes;

  void add_port(unsigned short type, std::uint16_t port) {
    const std::uint16_t value = htons(port);
    add(type, std::as_bytes(std::span(&value, 1)));
  }
  void add(unsigned short type, std::span<const std::byte> value) {
    auto* const at = reinterpret_cast<std::byte*>(this) + head.nlmsg_len;
    const rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(value.size())), type};
    std::memcpy(at, &attribute, sizeof attribute);
    std::memcpy(at + RTA_LENGTH(0), value.data(), value.size());
    head.nlmsg_len += static_cast<std::uint32_t>(RTA_SPACE(value.size()));
  }
};

// The last bytes of an address: four of one of IPv4.
std::span<const std::byte> bytes_of(const std::array<std::uint8_t, 16>& ip, bool four) {
  return std::as_bytes(std::span(ip)).last(four ? 4 : 16);
}

Question question(const Peers::Route& way, const InternetAddress& own, unsigned interface,
                  std::uint32_t serial) {
  const bool four = way.to.ipv4().has_value();
  Question asks{};
  asks.head.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof asks.body));
  asks.head.nlmsg_type = RTM_GETROUTE;
  asks.head.nlmsg_flags = NLM_F_REQUEST;
  asks.head.nlmsg_seq = serial;
  asks.body.rtm_family = four ? AF_INET : AF_INET6;
  asks.body.rtm_dst_len = four ? 32 : 128;
  asks.add(RTA_DST, bytes_of(way.to.ip, four));
  const OwnAddress from = way.from != OwnAddress{} ? way.from : OwnAddress{own.ip, own.scope};
  if (from != OwnAddress{}) {
    asks.body.rtm_src_len = asks.body.rtm_dst_len;
    asks.add(RTA_SRC, bytes_of(from.ip, four));
  }
  const std::uint32_t scope = way.to.scope != 0 ? way.to.scope : from.scope;
  const std::uint32_t out = scope != 0 ? scope : interface;
  if (out != 0) asks.add(RTA_OIF, std::as_bytes(std::span(&out, 1)));
  if (own.port != 0) {
    constexpr std::byte kUdp{IPPROTO_UDP};
    asks.add(RTA_IP_PROTO, {&kUdp, 1});
    asks.add_port(RTA_SPORT, own.port);
    asks.add_port(RTA_DPORT, way.to.port);
  }
  return asks;
}

}  // namespace

Routes::Found Routes::read_route(const nlmsghdr& message) {
  const auto* const body = static_cast<const rtmsg*>(NLMSG_DATA(&message));
  Found found{.here = body->rtm_type == RTN_LOCAL};
  auto left = static_cast<int>(RTM_PAYLOAD(&message));
  for (const rtattr* at = RTM_RTA(body); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
    switch (at->rta_type) {
      case RTA_GATEWAY:
      case RTA_VIA:
      case RTA_MULTIPATH:
      case RTA_ENCAP:
        found.gateway = true;
        break;
      case RTA_OIF:
        if (RTA_PAYLOAD(at) == sizeof found.interface)
          std::memcpy(&found.interface, RTA_DATA(at), sizeof found.interface);
        break;
      default:
        break;
    }
  }
  return found;
}

// The answer to the question `serial`. nullopt: none, or that there is no such route.
std::optional<Routes::Found> Routes::answer(int fd, std::uint32_t serial) {
  alignas(nlmsghdr) std::array<std::byte, 4'096> bytes;
  for (;;) {
    const ssize_t size = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return std::nullopt;
    auto left = static_cast<unsigned>(size);
    const auto* const message = reinterpret_cast<const nlmsghdr*>(bytes.data());
    if (!NLMSG_OK(message, left) || message->nlmsg_seq != serial) continue;
    const bool is_route =
        message->nlmsg_type == RTM_NEWROUTE && message->nlmsg_len >= NLMSG_LENGTH(sizeof(rtmsg));
    return is_route ? std::optional(read_route(*message)) : std::nullopt;
  }
}

namespace {

// What it sends goes to one other host, or is no Ethernet frame: most of these are tunnels, and so
// is one of which the kernel tells nothing. That of this host itself is none.
bool is_tunnel(int fd, unsigned interface) {
  ifreq request{};
  request.ifr_ifindex = static_cast<int>(interface);
  if (::ioctl(fd, SIOCGIFNAME, &request) != 0 || ::ioctl(fd, SIOCGIFFLAGS, &request) != 0)
    return true;
  const auto flags = static_cast<unsigned>(request.ifr_flags);
  return (flags & IFF_LOOPBACK) == 0 && (flags & (IFF_POINTOPOINT | IFF_NOARP)) != 0;
}

}  // namespace

Routes::Routes(const Peers& peers, const InternetAddress& own, Random& random, UdpSocket* socket)
    : peers_(peers), own_(own), socket_(socket) {
  hash_.draw(random);
}

Routes::~Routes() {
  if (fd_ >= 0) ::close(fd_);
}

bool Routes::open() {
  if (fd_ < 0) fd_ = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  return fd_ >= 0;
}

bool Routes::is_shared(const MacAddr& station) {
  const std::uint64_t name = station.to_u64();
  Answer& known = answers_[hash_(std::array{name}) >> (64 - kBits)];
  if (known.station == name && known.asked != kNever && now_ - known.asked < kHolds)
    return known.shared;
  if (left_ == 0) return known.station != name || known.shared;
  if (left_ != kNoLimit) --left_;
  const auto way = peers_.way_to(station);
  known = {.station = name, .asked = now_, .shared = !way || ask(*way)};
  return known.shared;
}

// The kernel answers before send() returns.
bool Routes::ask(const Peers::Route& way) {
  if (way.to.is_loopback()) return false;
  const auto found = find(way);
  if (!found) return true;
  return !found->here && (found->gateway || is_tunnel(fd_, found->interface));
}

unsigned Routes::interface_to(const Peers::Route& way) {
  const auto found = find(way);
  return found ? found->interface : 0;
}

std::optional<Routes::Found> Routes::find(const Peers::Route& way) {
  ++asked_;
  if (!open()) return std::nullopt;
  const Question asks = question(way, own_, interface_, ++serial_);
  if (::send(fd_, &asks, asks.head.nlmsg_len, 0) != static_cast<ssize_t>(asks.head.nlmsg_len))
    return std::nullopt;
  return answer(fd_, serial_);
}

}  // namespace stp::port
