// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/udp_socket.h"

#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/udp/peers.h"
#include "stp/wire/layout.h"

namespace stp::port {
namespace {

// As much as a turn may be late for, at the rate of a fast network, and of what is received besides
// what KeptMessages leave there. The kernel doubles both. Without privileges it gives
// net.core.rmem_max at most.
constexpr int kSendBuffer = 10 << 20, kReceiveBuffer = 24 << 20;
constexpr unsigned kUsualIpMtu = 1500;
constexpr std::size_t kReportsAtOnce = 16;
// How often a call is made again while reports may be what makes it fail.
constexpr int kTries = 4;

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

void set_buffer(int fd, int forced, int usual, int size) {
  if (::setsockopt(fd, SOL_SOCKET, forced, &size, sizeof size) != 0)
    set_option(fd, SOL_SOCKET, usual, size);
}

// What a firewall says that refuses a datagram.
bool is_of_firewall(const sock_extended_err& report) {
  const int code = report.ee_code;
  if (report.ee_origin == SO_EE_ORIGIN_ICMP)
    return report.ee_type == ICMP_DEST_UNREACH &&
           (code == ICMP_NET_ANO || code == ICMP_HOST_ANO || code == ICMP_PKT_FILTERED);
  constexpr int kPolicy = 5, kRejects = 6;  // RFC 4443
  return report.ee_origin == SO_EE_ORIGIN_ICMP6 && report.ee_type == ICMP6_DST_UNREACH &&
         (code == ICMP6_DST_UNREACH_ADMIN || code == kPolicy || code == kRejects);
}

std::string explain_bind(int error, const InternetAddress& to) {
  const std::string text = "cannot use " + to_string(to) + ": " + std::strerror(error);
  if (error == EADDRINUSE)
    return text +
           ": another program has this UDP port: name another one (port=), or 0 for a free one";
  if (error == EADDRNOTAVAIL) {
    const auto vrf = hint_at_vrf(to);
    return text + ": " +
           (vrf.empty() ? "no interface of this host has the address (ip address)" +
                              hint_at_short_packets(to)
                        : host_of(to) + vrf);
  }
  if (error == EACCES) return text + ": ports below 1024 are for root: name another one (port=)";
  return text;
}

// What to look for if no host could be found at an address, or none behind a router.
std::string unanswered(const InternetAddress& to) {
  return ": no host has that address there, or it is off: see whether it answers ping " +
         host_of(to);
}

// How to see what a route says that lets nothing through.
std::string look_at_route(const InternetAddress& to) {
  return " (ip route get " + host_of(to) + ")";
}

// What a report about a peer says.
std::string explain_report(const sock_extended_err& report, const InternetAddress& to, bool raw) {
  const std::string whom = to_string(to);
  const int error = static_cast<int>(report.ee_errno);
  // Of a protocol that a host does not have, ICMPv6 tells as of a header that is wrong.
  const bool no_protocol = error == ENOPROTOOPT || error == EPROTO;
  if (error == ECONNREFUSED && !raw)
    return whom +
           " has no socket for that port: no udp: link is open there, or a firewall there refuses "
           "it";
  if (no_protocol && raw)
    return whom + " has no socket for IP protocol 118: no ip: link is open there";
  const std::string text = "the way to " + whom + " reports: " + std::strerror(error);
  // Hosts do not report so of what has no ports.
  if (is_of_firewall(report) || error == ECONNREFUSED)
    return text + ": a firewall there forbids it";
  if (no_protocol) return text + ": that host, or a firewall there, takes no UDP";
  if (error == EHOSTUNREACH) return text + unanswered(to);
  return text + (error == ENETUNREACH ? ": no route leads there (ip route)" : "");
}

// The shortest datagram whose packet has more than `mtu` bytes.
std::size_t longer_than(const InternetAddress& to, bool raw, std::size_t mtu) {
  const std::size_t headers = (to.ipv4() ? kIpv4Header : kIpv6Header) + (raw ? 0 : kUdpHeader);
  return mtu < headers ? 0 : mtu - headers + 1;
}

std::string explain_socket(int error, bool raw) {
  const std::string text = std::strerror(error);
  if (!raw) return "no UDP socket: " + text;
  return "no raw socket: " + text +
         (error == EPERM ? ": it needs CAP_NET_RAW; a udp: link needs nothing" : "");
}

// ECN in the type of service, or the traffic class (RFC 3168).
constexpr int kMayBeMarked = 2, kMarks = 3;  // ECT(0); the bits, and CE

// Writes a message of control data. Returns its length, without padding behind it.
template <typename Info>
std::size_t put_control(std::span<std::byte> control, int level, int type, const Info& info) {
  std::ranges::fill(control.first(CMSG_SPACE(sizeof info)), std::byte{0});
  auto* const head = reinterpret_cast<cmsghdr*>(control.data());
  head->cmsg_level = level;
  head->cmsg_type = type;
  head->cmsg_len = CMSG_LEN(sizeof info);
  std::memcpy(CMSG_DATA(head), &info, sizeof info);
  return CMSG_LEN(sizeof info);
}

// The network namespace of a socket. nullopt: the kernel is older than 5.14.
std::optional<std::uint64_t> network_of(int fd) {
  std::uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  if (::getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length) != 0) return std::nullopt;
  return cookie;
}

std::string kind_of(const LinkConfig& config) {
  return config.kind == LinkKind::kIp ? "ip:" : "udp:";
}

InternetAddress any_of(int family) {
  return family == AF_INET ? InternetAddress::of(Ipv4{0}, 0) : InternetAddress{};
}

// nullopt: the link is at all addresses, or those of an interface.
std::optional<InternetAddress> address_in(const LinkConfig& config) {
  const std::string& target = config.target;
  const bool brackets = target.starts_with('[') && target.ends_with(']');
  return parse_internet_address(brackets ? target.substr(1, target.size() - 2) : target);
}

// A UDP socket for both families reaches everybody. A raw one has one of them.
int family_for(const LinkConfig& config, std::optional<InternetAddress> address) {
  const bool raw = config.kind == LinkKind::kIp;
  if (raw && !address) address = address_of(config.target);
  if (raw && !address) return AF_INET;
  return address && address->ipv4() ? AF_INET : AF_INET6;
}

constexpr std::size_t kRawWord = 8;  // digits of 32 bits

// Of what /proc/net/raw tells: "0100007F:0076", or four such words before the colon, in the byte
// order of the host. nullopt: of another protocol.
std::optional<InternetAddress> local_address(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos || colon % kRawWord != 0) return std::nullopt;
  if (std::stoul(text.substr(colon + 1), nullptr, 16) != wire::kIpProtocol) return std::nullopt;
  InternetAddress out;
  for (std::size_t at = 0; at < colon && at / 2 < out.ip.size(); at += kRawWord) {
    const auto word =
        static_cast<std::uint32_t>(std::stoul(text.substr(at, kRawWord), nullptr, 16));
    if (colon == kRawWord) return InternetAddress::of(Ipv4{ntohl(word)}, 0);
    std::memcpy(&out.ip[at / 2], &word, sizeof word);
  }
  return out;
}

}  // namespace

unsigned raw_sockets_at(const InternetAddress& address, std::istream& list) {
  unsigned count = 0;
  std::string line;
  std::getline(list, line);  // what the columns are
  std::string slot, local;
  while (list >> slot >> local) {
    const auto found = local_address(local);
    if (found && (found->is_unspecified() || address.is_unspecified() || found->ip == address.ip))
      ++count;
    std::getline(list, line);
  }
  return count;
}

unsigned raw_sockets_at(const InternetAddress& address) {
  std::ifstream list(std::string("/proc/thread-self/net/raw") + (address.ipv4() ? "" : "6"));
  return raw_sockets_at(address, list);
}

std::vector<std::unique_ptr<UdpSocket>> UdpSocket::open(const LinkConfig& config, unsigned count,
                                                        bool again, UdpTroubles& troubles,
                                                        OpenError& error) {
  std::vector<std::unique_ptr<UdpSocket>> all;
  for (unsigned place = 0; place < count; ++place) {
    auto next = open(config, all.empty() ? nullptr : all.front().get(), troubles, error);
    if (!next) return {};
    // Only now may others have the port as well: so the first one has seen that nobody has it. The
    // kernel lets in those of the same user.
    if (place == 0 && count > 1) next->let_others_in(true);
    all.push_back(std::move(next));
  }
  if (count > 1) all.front()->steer(count);
  if (!again) error.text = all.front()->other_raw_sockets();
  if (!again && error.text.empty()) error.text = all.front()->longer_than_interface(config);
  if (!error.text.empty()) return {};
  // Behind all others, whose places the kernel counts.
  for (const auto& each : all)
    for (auto& deaf : each->deaf_) deaf = each->open_deaf();
  return all;
}

std::unique_ptr<UdpSocket> UdpSocket::open(const LinkConfig& config, const UdpSocket* first,
                                           UdpTroubles& troubles, OpenError& error) {
  const auto address = address_in(config);
  const std::string interface = address ? "" : config.target;
  if (!interface.empty() && ::if_nametoindex(interface.c_str()) == 0) {
    error.text =
        "'" + config.target + "' is neither an address nor an interface of this host: after " +
        kind_of(config) +
        " stands 10.0.0.5, [2001:db8::5], an interface such as eth0, or nothing for all addresses";
    return nullptr;
  }
  const bool raw = config.kind == LinkKind::kIp;
  const int type = (raw ? SOCK_RAW : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
  const int protocol = raw ? int{wire::kIpProtocol} : 0;
  int family = family_for(config, address);
  int fd = ::socket(family, type, protocol);
  if (fd < 0 && errno == EAFNOSUPPORT && !address) fd = ::socket(family = AF_INET, type, protocol);
  if (fd < 0) {
    error.text = explain_socket(errno, raw);
    return nullptr;
  }
  std::unique_ptr<UdpSocket> out(new UdpSocket(fd, family, raw, troubles));
  error.text = unfit_here(config);
  if (!error.text.empty()) return nullptr;
  out->any_ = !address || address->is_unspecified();
  out->set_options();
  if (config.congestion == Congestion::kOn) out->tell_marks();
  if (first != nullptr) out->let_others_in(true);
  InternetAddress to = address.value_or(InternetAddress{});
  if (!address) to = any_of(family);
  to.port = raw                ? std::uint16_t{0}
            : first != nullptr ? first->address_.port
                               : static_cast<std::uint16_t>(config.port.value_or(wire::kUdpPort));
  error = out->bind(interface, to);
  if (error.text.empty()) error.text = out->find_longest(config, interface);
  return error.text.empty() ? std::move(out) : nullptr;
}

// The kernel binds any number of raw sockets to one address.
std::string UdpSocket::other_raw_sockets() const {
  if (!raw_) return "";
  const InternetAddress bound = any_ ? any_of(family_) : address_;
  return raw_sockets_at(bound) <= 1 ? ""
                                    : "another program has a socket of IP protocol 118 at " +
                                          (any_ ? "an address of this host" : to_string(bound)) +
                                          ": only one link can be there ('ss -wlp' lists them)";
}

// The kernel asks the program with the data of a datagram, or with those of several that it has
// joined, one behind the other. Of a datagram that is too short, the answer is 0.
void UdpSocket::steer(unsigned count) {
  std::array<sock_filter, 3> code{{BPF_STMT(BPF_LD | BPF_H | BPF_ABS, wire::at::kDPort),
                                   BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, count),
                                   BPF_STMT(BPF_RET | BPF_A, 0)}};
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::setsockopt(fd_, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program) != 0)
    not_steered_ = std::string("the kernel takes no program that picks one of several sockets (") +
                   std::strerror(errno) + ")";
}

std::string UdpSocket::take_place_of(UdpSocket& other) {
  // Before as well, so that whoever reads from the new one sees that it has changed, but for a call
  // that has begun already; and whoever has begun in between sees it afterwards.
  other.replaced_.fetch_add(1, std::memory_order_acq_rel);
  const bool replaced = ::dup3(fd_, other.fd_, O_CLOEXEC) >= 0;
  const int error = errno;
  other.replaced_.fetch_add(1, std::memory_order_acq_rel);
  if (!replaced) return std::strerror(error);
  // Afterwards, because the shard of the other one may ask for it at any time.
  if (other.tells_marks_) tell_marks();
  std::string fault;
  // Where the kernel has refused another deaf one, that one is at an interface that has gone.
  for (std::size_t i = 0; i < deaf_.size() && fault.empty(); ++i)
    if (other.deaf_[i]) fault = (deaf_[i] ? *deaf_[i] : *this).take_place_of(*other.deaf_[i]);
  return fault;
}

// Until it is connected it may get what is for this one, which is lost then.
std::unique_ptr<UdpSocket> UdpSocket::open_deaf() const {
  const auto bound_to = device();
  const int type = (raw_ ? SOCK_RAW : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
  const int fd = bound_to ? ::socket(family_, type, raw_ ? int{wire::kIpProtocol} : 0) : -1;
  if (fd < 0) return nullptr;
  std::unique_ptr<UdpSocket> out(new UdpSocket(fd, family_, raw_, troubles_));
  out->any_ = any_;
  out->errors_ = errors_;
  out->longest_ = longest_;
  out->set_options();
  // Of what leaves it tells without the data.
  set_option(fd, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_OPT_TSONLY);
  InternetAddress at = any_ ? any_of(family_) : address_;
  at.port = address_.port;
  if (out->share(*this, *bound_to, at) != 0) return nullptr;
  out->address_ = address_;
  return out->hear_nobody() ? std::move(out) : nullptr;
}

// Others may have the port only while this one gets its place there. In the moment until it is
// connected anybody's datagrams may come to it: a message tells whose it is.
std::unique_ptr<UdpSocket> UdpSocket::toward(const InternetAddress& peer, const OwnAddress& own,
                                             unsigned interface, bool& for_good) {
  const auto bound_to = device();
  std::array<char, IF_NAMESIZE> device{};
  if (!bound_to || ::if_indextoname(interface, device.data()) == nullptr) return nullptr;
  const InternetAddress at = address(own);
  const int family = peer.ipv4() ? AF_INET : AF_INET6;
  sockaddr_storage name{};
  const socklen_t length = to_socket_address(peer, family, name);
  if (raw_ || at.is_unspecified() || at.ipv4().has_value() != peer.ipv4().has_value())
    return nullptr;
  const int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return nullptr;
  std::unique_ptr<UdpSocket> out(new UdpSocket(fd, family, false, troubles_));
  const auto here = network_of(fd);
  for_good = !here;
  if (!here || here != network_of(fd_)) return nullptr;
  out->errors_ = errors_;
  out->longest_ = longest_;
  out->set_options();
  set_option(fd, IPPROTO_UDP, UDP_GRO, 0);
  out->joins_ = false;
  if (tells_marks_) out->tell_marks();
  const int error = out->share(*this, bound_to->empty() ? device.data() : *bound_to, at);
  // A process that has changed its user shares no port with what it had before.
  for_good = error == EADDRINUSE || error == EACCES || error == EPERM;
  const auto* const as_any = reinterpret_cast<const sockaddr*>(&name);
  return error == 0 && ::connect(fd, as_any, length) == 0 ? std::move(out) : nullptr;
}

// Bound to the port of `other`. Returns the error of the kernel; 0: none.
int UdpSocket::share(const UdpSocket& other, const std::string& interface,
                     const InternetAddress& at) {
  if (::setsockopt(fd_, SOL_SOCKET, SO_BINDTODEVICE, interface.data(),
                   static_cast<socklen_t>(interface.size())) != 0)
    return errno;
  if (family_ == AF_INET6) set_option(fd_, IPPROTO_IPV6, IPV6_V6ONLY, any_ ? 0 : 1);
  sockaddr_storage name{};
  const socklen_t length = to_socket_address(at, family_, name);
  const bool were_let_in = other.lets_others_in();
  other.let_others_in(true);
  let_others_in(true);
  const int error = ::bind(fd_, reinterpret_cast<const sockaddr*>(&name), length) == 0 ? 0 : errno;
  let_others_in(were_let_in);
  other.let_others_in(were_let_in);
  address_ = at;
  return error;
}

// Connected to a port of its own address that nobody sends from. One at all addresses says with
// each datagram what it is from.
bool UdpSocket::hear_nobody() const {
  constexpr std::uint16_t kDiscard = 9;  // RFC 863
  const auto connect_to = [this](InternetAddress at) {
    at.port = raw_ ? 0 : kDiscard;
    sockaddr_storage name{};
    const socklen_t length = to_socket_address(at, family_, name);
    return length != 0 && ::connect(fd_, reinterpret_cast<const sockaddr*>(&name), length) == 0;
  };
  return connect_to(address_) ||
         (any_ && connect_to(InternetAddress::of(Ipv4{INADDR_LOOPBACK}, 0)));
}

// Also while the kernel looks for the port of another socket.
void UdpSocket::let_others_in(bool on) const {
  set_option(fd_, SOL_SOCKET, SO_REUSEPORT, on ? 1 : 0);
  for (const auto& deaf : deaf_)
    if (deaf) deaf->let_others_in(on);
}

bool UdpSocket::lets_others_in() const {
  int on = 0;
  socklen_t length = sizeof on;
  return ::getsockopt(fd_, SOL_SOCKET, SO_REUSEPORT, &on, &length) == 0 && on != 0;
}

std::optional<std::string> UdpSocket::device() const {
  std::array<char, IF_NAMESIZE> name{};
  socklen_t length = name.size();
  if (::getsockopt(fd_, SOL_SOCKET, SO_BINDTODEVICE, name.data(), &length) != 0)
    return std::nullopt;
  return name.data();
}

UdpSocket::~UdpSocket() {
  ::close(fd_);
}

// Each is an offer of the kernel: without it the link is slower, or tells less.
void UdpSocket::set_options() {
  set_buffer(fd_, SO_RCVBUFFORCE, SO_RCVBUF, kReceiveBuffer);
  set_buffer(fd_, SO_SNDBUFFORCE, SO_SNDBUF, kSendBuffer);
  int size = 0;
  socklen_t length = sizeof size;
  if (::getsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &size, &length) == 0)
    receive_bytes_ = static_cast<std::size_t>(size);
  if (::getsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &size, &length) == 0)
    send_bytes_ = static_cast<std::size_t>(size);
  // protocol: 13.6
  // Never fragments, and believes no report about the length of packets: anybody can forge one.
  set_option(fd_, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  if (any_ && family_ == AF_INET) set_option(fd_, IPPROTO_IP, IP_PKTINFO, 1);
  if (any_ && family_ == AF_INET6) set_option(fd_, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
  if (family_ == AF_INET6) {
    set_option(fd_, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    set_option(fd_, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
  }
  mute(false, kNever);
  const int off = 0, on = 1;
  segments_ = ::setsockopt(fd_, IPPROTO_UDP, UDP_SEGMENT, &off, sizeof off) == 0;
  joins_ = ::setsockopt(fd_, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
  if (joins_) read_from_begin();
}

void UdpSocket::read_from_begin() const {
  set_option(fd_, SOL_SOCKET, SO_PEEK_OFF, 0);
}

bool UdpSocket::reads_each_once() const {
  int offset = -1;
  socklen_t length = sizeof offset;
  return ::getsockopt(fd_, SOL_SOCKET, SO_PEEK_OFF, &offset, &length) == 0 && offset == 0;
}

bool UdpSocket::is_of_nic() const {
  unsigned poller = 0;
  socklen_t length = sizeof poller;
  return ::getsockopt(fd_, SOL_SOCKET, SO_INCOMING_NAPI_ID, &poller, &length) != 0 || poller != 0;
}

// `interface`: "" if the link has an address, or all of them.
OpenError UdpSocket::bind(const std::string& interface, const InternetAddress& to) {
  if (!interface.empty() && ::setsockopt(fd_, SOL_SOCKET, SO_BINDTODEVICE, interface.data(),
                                         static_cast<socklen_t>(interface.size())) != 0)
    return {"cannot be bound to the interface: " + std::string(std::strerror(errno)) +
            ": name its address instead"};
  if (family_ == AF_INET6) set_option(fd_, IPPROTO_IPV6, IPV6_V6ONLY, any_ ? 0 : 1);
  sockaddr_storage name{};
  socklen_t length = to_socket_address(to, family_, name);
  auto* const as_any = reinterpret_cast<sockaddr*>(&name);
  if (::bind(fd_, as_any, length) != 0) {
    const int error = errno;
    return {explain_bind(error, to), error == EADDRINUSE};
  }
  length = sizeof name;
  if (::getsockname(fd_, as_any, &length) != 0) return {std::strerror(errno)};
  address_ = from_socket_address(as_any).value_or(to);
  // A raw one has its protocol in the place of the port.
  if (raw_) address_.port = 0;
  if (!any_) return {};
  const auto own =
      interface.empty() ? usual_address(raw_ ? family_ : AF_UNSPEC) : address_of(interface);
  if (own) {
    address_.ip = own->ip;
    address_.scope = own->scope;
  }
  return {};
}

// protocol: 13.2
OwnAddress UdpSocket::came_to(const msghdr& message) const {
  if (!any_) return {};
  InternetAddress at;
  for (const cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(each))) {
    if (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(each), sizeof info);
      at = InternetAddress::of(Ipv4{ntohl(info.ipi_addr.s_addr)}, 0);
    } else if (each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(each), sizeof info);
      std::memcpy(at.ip.data(), &info.ipi6_addr, at.ip.size());
      if (at.is_link_local()) at.scope = info.ipi6_ifindex;
    }
  }
  return at.ip == address_.ip ? OwnAddress{} : OwnAddress{at.ip, at.scope};
}

OwnAddress UdpSocket::used_for(const InternetAddress& to) const {
  if (!any_) return {};
  InternetAddress target = to;
  if (target.port == 0) target.port = wire::kUdpPort;  // of a raw socket, which has none
  sockaddr_storage name{};
  socklen_t length = to_socket_address(target, family_, name);
  const int fd = length == 0 ? -1 : ::socket(family_, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  if (const auto name_of_device = device(); name_of_device && !name_of_device->empty())
    ::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name_of_device->data(),
                 static_cast<socklen_t>(name_of_device->size()));
  auto* const as_any = reinterpret_cast<sockaddr*>(&name);
  const bool known =
      ::connect(fd, as_any, length) == 0 && ::getsockname(fd, as_any, &(length = sizeof name)) == 0;
  ::close(fd);
  const auto own = known ? from_socket_address(as_any) : std::nullopt;
  return own && own->ip != address_.ip ? OwnAddress{own->ip, own->scope} : OwnAddress{};
}

std::size_t UdpSocket::send_from(const OwnAddress& own, const InternetAddress& to,
                                 std::span<std::byte> control) const {
  const InternetAddress from = address(own);
  if (!any_ || from.is_unspecified() || from.ipv4().has_value() != to.ipv4().has_value()) return 0;
  if (family_ == AF_INET) {
    in_pktinfo info{};
    info.ipi_spec_dst.s_addr = htonl(from.ipv4()->value);
    return put_control(control, IPPROTO_IP, IP_PKTINFO, info);
  }
  in6_pktinfo info{};
  std::memcpy(&info.ipi6_addr, from.ip.data(), from.ip.size());
  // The kernel takes a link-local address to send from with its interface only.
  info.ipi6_ifindex = to.scope != 0 ? to.scope : from.scope;
  return put_control(control, IPPROTO_IPV6, IPV6_PKTINFO, info);
}

std::size_t UdpSocket::let_mark(const InternetAddress& to, std::span<std::byte> control) {
  return to.ipv4() ? put_control(control, IPPROTO_IP, IP_TOS, kMayBeMarked)
                   : put_control(control, IPPROTO_IPV6, IPV6_TCLASS, kMayBeMarked);
}

std::size_t UdpSocket::ask_departure(std::span<std::byte> control) {
  return put_control(control, SOL_SOCKET, SO_TIMESTAMPING,
                     std::uint32_t{SOF_TIMESTAMPING_TX_SCHED});
}

bool UdpSocket::kernel_tells(Time now) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  UdpTroubles nobodys;
  UdpSocket socket(fd, AF_INET, false, nobodys);
  set_option(fd, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_OPT_TSONLY);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const as_any = reinterpret_cast<sockaddr*>(&name);
  socklen_t length = sizeof name;
  if (::bind(fd, as_any, length) != 0 || ::getsockname(fd, as_any, &length) != 0) return false;
  alignas(cmsghdr) std::array<std::byte, kAskControl> control{};
  msghdr message{};
  message.msg_name = &name;
  message.msg_namelen = length;
  message.msg_control = control.data();
  message.msg_controllen = ask_departure(control);
  return ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 0 && socket.has_left(now);
}

bool UdpSocket::has_left(Time now) {
  left_ = false;
  read_reports(now);
  return left_;
}

std::size_t UdpSocket::unsent() const {
  int bytes = 0;
  return ::ioctl(fd_, SIOCOUTQ, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

// Not before somebody needs it: it costs each call that receives a tenth of a microsecond.
void UdpSocket::tell_marks() {
  if (tells_marks_.exchange(true)) return;
  set_option(fd_, IPPROTO_IP, IP_RECVTOS, 1);
  if (family_ == AF_INET6) set_option(fd_, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
}

bool UdpSocket::is_marked(const msghdr& message) {
  for (const cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(each))) {
    const bool tells = (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_TOS) ||
                       (each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == IPV6_TCLASS);
    // One is a byte, the other an int.
    if (tells && each->cmsg_len >= CMSG_LEN(sizeof(int))) {
      int type = 0;
      std::memcpy(&type, CMSG_DATA(each), sizeof type);
      return (type & kMarks) == kMarks;
    }
    if (tells) return (*CMSG_DATA(each) & kMarks) == kMarks;
  }
  return false;
}

// protocol: 13.5
std::string UdpSocket::find_longest(const LinkConfig& config, const std::string& interface) {
  std::string of = interface.empty() ? interface_with(address_) : interface;
  // That of all loopback addresses has only some of them, as 127.0.0.1 and not 127.0.0.2.
  if (of.empty() && address_.is_loopback())
    of = interface_with(*parse_internet_address("127.0.0.1"));
  unsigned mtu = config.mtu.value_or(mtu_of(of));
  if (mtu == 0) mtu = kUsualIpMtu;
  longest_ = mtu > headers() ? std::min<unsigned>(mtu - headers(), kLongestDatagram) : 0;
  if (longest_ >= kMinMtu) return "";
  const bool would_do =
      any_ && family_ != AF_INET && mtu >= kMinMtu + kIpv4Header + (raw_ ? 0 : kUdpHeader);
  return "an MTU of " + std::to_string(mtu) + " is too short: STP over " + (raw_ ? "IP" : "UDP") +
         " needs " + std::to_string(kMinMtu + headers()) +
         (family_ == AF_INET ? "" : " over IPv6") +
         (would_do ? ", which needs 1280 itself: for IPv4 alone open " + kind_of(config) +
                         "0.0.0.0, or " + kind_of(config) + " with an IPv4 address"
                   : "");
}

// Of a link at all addresses nobody can say which interface it will send from, and one at an
// address may send from another one than the address is of. "": it is not.
std::string UdpSocket::longer_than_interface(const LinkConfig& config) const {
  const auto address = address_in(config);
  if (!config.mtu || (address && address->is_unspecified()) || (!address && config.target.empty()))
    return "";
  const std::string interface = address ? interface_with(address_) : config.target;
  const unsigned carries = mtu_of(interface);
  if (carries == 0 || *config.mtu <= carries) return "";
  if (address && *config.mtu <= most_mtu()) return "";
  return "mtu=" + std::to_string(*config.mtu) + " is more than interface " + interface +
         " carries, whose MTU is " + std::to_string(carries) +
         ": leave mtu= out, or raise that: ip link set " + interface + " mtu " +
         std::to_string(*config.mtu);
}

void UdpSocket::stop_segmenting(int error, Time now) {
  segments_ = false;
  not_segmented_ = error;
  std::string text = std::string("datagrams leave one by one, because the kernel does not cut ") +
                     "several apart (UDP_SEGMENT): " + std::strerror(error);
  if (error == EIO)
    text +=
        ": the device computes no checksums (ethtool -k: tx-checksumming), or IPsec changes "
        "packets";
  troubles_.tell(UdpTroubles::About::kOther, std::move(text), now);
}

void UdpSocket::count_too_long(std::size_t bytes, Time now) {
  ++errors_->too_long;
  troubles_.tell(
      UdpTroubles::About::kLength,
      "a datagram of " + std::to_string(bytes) +
          " bytes is longer than the interface carries: raise its MTU" +
          (carries_ == 0 ? ", or open the link with a smaller mtu="
                         : " of " + std::to_string(carries_) +
                               ", or open the link with mtu=" + std::to_string(carries_)),
      now, bytes);
}

// "": that is not the cause.
std::string UdpSocket::confined_to_host(const InternetAddress& to, int error) const {
  if (error == EPERM || error == EACCES || !address_.is_loopback() || to.is_loopback()) return "";
  return ": the link is at " + host_of(address_) +
         ", which other hosts do not reach: name another address of this host, or none (udp:)";
}

void UdpSocket::count_refused(std::size_t datagrams, const InternetAddress& to, int error,
                              Time now) {
  errors_->refused += datagrams;
  std::string text = "cannot send to " + to_string(to) + ": " + std::strerror(error);
  if (error == EPERM) text += ": a firewall of this host forbids it";
  if (error == EACCES)
    text += ": a route forbids it" + look_at_route(to) +
            (to.ipv4() ? ", or it is the address of all hosts of a network" : "");
  if (const auto why = confined_to_host(to, error); !why.empty()) {
    text += why;
    error = 0;
  }
  if (error == ENETUNREACH) text += ": no route leads there (ip route)";
  if (error == EHOSTUNREACH) text += unanswered(to);
  if (error == EADDRNOTAVAIL)
    text += std::string(": this host has no address for that") +
            (to.ipv4() ? "" : ": IPv6 may be switched off here") + " (ip address)";
  if (error == EINVAL)
    text +=
        ": a route lets nothing through" + look_at_route(to) +
        (any_ ? ", or this host no longer has the address that the peer knows (ip address)" : "");
  troubles_.tell(UdpTroubles::About::kOther, to, std::move(text), now);
}

// Not of the peer: its way may be free again at once.
void UdpSocket::tell_lost(const InternetAddress& to, int error, Time now) {
  troubles_.tell(
      UdpTroubles::About::kOther,
      "the kernel loses what is sent to " + to_string(to) + ": " + std::strerror(error) +
          ": the queue of the interface is full, or the table of neighbors "
          "(net.ipv4.neigh.default.gc_thresh3), or the memory; or the other end of a veth carries "
          "shorter packets",
      now);
}

void UdpSocket::count_failed(int error, Time now) {
  ++errors_->failed;
  troubles_.tell(UdpTroubles::About::kOther,
                 "a socket of the link fails: " + std::string(std::strerror(error)) +
                     ": if it goes on, restart this program",
                 now);
}

// Without these options an ICMP message changes nothing of a socket that is not connected.
void UdpSocket::mute(bool on, Time until) {
  muted_until_ = until;
  set_option(fd_, IPPROTO_IP, IP_RECVERR, on ? 0 : 1);
  if (family_ == AF_INET6) set_option(fd_, IPPROTO_IPV6, IPV6_RECVERR, on ? 0 : 1);
}

// The errors that the kernel makes of ICMP messages, and of nothing that is wrong with a call.
bool UdpSocket::may_be_reported(int error) {
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

bool UdpSocket::is_of_earlier(int error, Attempts& attempts, Time now) {
  if (error == EINTR) return true;
  if (!may_be_reported(error) || attempts.made > kTries + 1) return false;
  const int made = attempts.made++;
  const std::uint64_t before = errors_->reports;
  read_reports(now);
  // A report may have been read just before its error was told: so there is one try without any.
  attempts.silent = errors_->reports == before ? attempts.silent + 1 : 0;
  if (attempts.silent > 1) return false;
  if (made < kTries) return true;
  if (muted_until_ == kNever) {
    if (errors_->reports != before) ++errors_->floods;
    mute(true, now + kMuted);
  }
  // Asking for the last one clears it. Another may just be on its way, so there are two more tries.
  int last = 0;
  socklen_t length = sizeof last;
  ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &last, &length);
  attempts.silent = 0;
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

// Of a length that no link of this kind could have, or that this one keeps, nothing is to be
// learnt.
void UdpSocket::note_length(const InternetAddress& to, unsigned mtu, Time now) {
  const std::string says =
      "the way to " + to_string(to) + " carries packets of " + std::to_string(mtu) + " bytes only";
  if (mtu >= kMinMtu + headers() && mtu < longest_ + headers())
    troubles_.tell(UdpTroubles::About::kLength, to,
                   says + ": open the link with mtu=" + std::to_string(mtu) +
                       " if that is so: the report may be forged",
                   now, longer_than(to, raw_, mtu));
  else
    troubles_.tell(
        UdpTroubles::About::kOther, to,
        "somebody reports that " + says +
            (mtu < kMinMtu + headers() ? ", too few for STP" : ", and gets no longer ones") +
            ": the report may be forged",
        now);
}

// What is said about the very call that has failed is left out: it says so itself.
void UdpSocket::note_report(const msghdr& message, Time now) {
  const auto to = from_socket_address(static_cast<const sockaddr*>(message.msg_name));
  for (const cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr;
       at = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(at))) {
    const bool is_report = (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_RECVERR) ||
                           (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_RECVERR);
    if (!is_report || at->cmsg_len < CMSG_LEN(sizeof(sock_extended_err))) continue;
    sock_extended_err report;
    std::memcpy(&report, CMSG_DATA(at), sizeof report);
    if (report.ee_origin == SO_EE_ORIGIN_TIMESTAMPING) left_ = true;
    if (report.ee_origin == SO_EE_ORIGIN_TIMESTAMPING || !to) continue;
    if (report.ee_origin == SO_EE_ORIGIN_LOCAL) {
      if (report.ee_errno == EMSGSIZE) carries_ = report.ee_info;
      return;
    }
    ++errors_->reports;
    const int error = static_cast<int>(report.ee_errno);
    if (error == EMSGSIZE) {
      note_length(*to, report.ee_info, now);
    } else {
      troubles_.tell(UdpTroubles::About::kOther, *to, explain_report(report, *to, raw_), now, 0,
                     error == EHOSTUNREACH && !is_of_firewall(report) ? UdpTroubles::kReported
                                                                      : UdpTroubles::kSoonReported);
    }
  }
}

}  // namespace stp::port
