// SPDX-License-Identifier: BSD-3-Clause
// What anybody in the network may send to two stpd's over UDP, at 127.0.0.1 and 127.0.0.2, or at
// fd00::1 and fd00::2, which have a connection. No move uses the socket of a stpd.
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <netpacket/packet.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "dpdk_port/link/address.h"
#include "libst/os/unique_fd.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/checksum.h"
#include "stp/wire/header.h"
#include "stp/wire/layout.h"
#include "stp/wire/operations.h"
#include "stp/wire/padding.h"
#include "tests/hostile/cannot.h"
#include "tests/hostile/moves.h"

namespace stp::hostile {
namespace {

using Packet = std::vector<std::byte>;

using port::InternetAddress;
using port::Ipv4;

constexpr std::uint16_t kPort = wire::kUdpPort;
constexpr std::uint64_t kUsualRate = 10'000;
constexpr std::size_t kLongest = 3'000;
constexpr std::uint64_t kHosts = 10'000;

InternetAddress ipv4(std::uint32_t address) {
  return InternetAddress::of(Ipv4{address}, kPort);
}

// fd00:NETWORK::HOST.
InternetAddress ipv6(std::uint64_t network, std::uint64_t host) {
  InternetAddress out;
  out.ip[0] = 0xfd;
  for (unsigned i = 0; i < 4; ++i) {
    out.ip[2 + i] = static_cast<std::uint8_t>(network >> (24 - 8 * i));
    out.ip[12 + i] = static_cast<std::uint8_t>(host >> (24 - 8 * i));
  }
  out.port = kPort;
  return out;
}

InternetAddress either(const Attack& attack, std::uint64_t number) {
  const auto place = static_cast<std::uint32_t>(number % 2);
  return attack.ipv6 ? ipv6(0, 1 + place) : ipv4(INADDR_LOOPBACK + place);
}

// One of many. Of IPv6, half of them are in one network of 64 bits, each other one in its own.
InternetAddress somebody(const Attack& attack, std::uint64_t number) {
  constexpr std::uint32_t kFirst = 0x0a010000;
  number %= kHosts;
  if (!attack.ipv6) return ipv4(kFirst + static_cast<std::uint32_t>(number));
  return number % 2 == 0 ? ipv6(1, number) : ipv6(2 + number, 1);
}

// Addresses that no single host has, or only together with an interface.
InternetAddress nobody(const Attack& attack, std::uint64_t number) {
  constexpr std::array<std::uint32_t, 3> kOfIpv4{INADDR_ANY, INADDR_ALLHOSTS_GROUP,
                                                 INADDR_BROADCAST};
  constexpr std::array kOfIpv6{"::", "ff02::1", "fe80::1", "::ffff:127.0.0.1"};
  if (!attack.ipv6) return ipv4(kOfIpv4[number % kOfIpv4.size()]);
  InternetAddress out;
  ::inet_pton(AF_INET6, kOfIpv6[number % kOfIpv6.size()], out.ip.data());
  out.port = kPort;
  return out;
}

UniqueFd open_socket(const Attack& attack, int type, int protocol) {
  UniqueFd fd(::socket(attack.ipv6 ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC, protocol));
  if (!fd) throw Cannot(std::string("no such socket: ") + std::strerror(errno));
  return fd;
}

bool send_to(const UniqueFd& fd, const InternetAddress& to, const Packet& bytes) {
  sockaddr_storage name{};
  const auto length = port::to_socket_address(to, to.ipv4() ? AF_INET : AF_INET6, name);
  return ::sendto(fd.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&name),
                  length) == static_cast<ssize_t>(bytes.size());
}

// By a raw socket, whose packets have no port.
bool send_packet(const UniqueFd& fd, InternetAddress to, const Packet& bytes) {
  to.port = 0;
  return send_to(fd, to, bytes);
}

// Each other one begins as a frame for one of the first Ports, with a Key that is guessed.
Packet noise_of(std::mt19937_64& dice, std::size_t length) {
  Packet bytes(length);
  for (auto& each : bytes) each = static_cast<std::byte>(dice());
  if (length < wire::kHeaderSize || dice() % 2 == 0) return bytes;
  wire::store16(&bytes[wire::at::kOpFlags],
                static_cast<std::uint16_t>((dice() % 32) << wire::kOpShift));
  wire::store16(&bytes[wire::at::kDPort], static_cast<std::uint16_t>(dice() % 16));
  wire::store16(&bytes[wire::at::kCksum], 0);
  return bytes;
}

// A part of a whole: its place, in words of 8 bytes, whether others follow, and the id of the
// whole.
struct Part {
  unsigned place = 0;
  bool more = false;
  unsigned id = 0;
};

template <typename Head>
Packet with_head(const Head& head, const Packet& data) {
  Packet out(sizeof head);
  std::memcpy(out.data(), &head, sizeof head);
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

Packet ipv4_packet(Ipv4 from, Ipv4 to, int protocol, const Packet& data, const Part& part) {
  iphdr head{};
  head.version = 4;
  head.ihl = sizeof head / 4;
  head.tot_len = htons(static_cast<std::uint16_t>(sizeof head + data.size()));
  head.id = htons(static_cast<std::uint16_t>(part.id));
  head.frag_off = htons(static_cast<std::uint16_t>(part.place | (part.more ? IP_MF : 0)));
  head.ttl = 64;
  head.protocol = static_cast<std::uint8_t>(protocol);
  head.saddr = htonl(from.value);
  head.daddr = htonl(to.value);
  return with_head(head, data);
}

Packet ipv6_packet(const InternetAddress& from, const InternetAddress& to, int protocol,
                   const Packet& data, const Part& part) {
  if (part.id != 0) {
    ip6_frag head{};
    head.ip6f_nxt = static_cast<std::uint8_t>(protocol);
    head.ip6f_offlg = htons(static_cast<std::uint16_t>(part.place << 3 | (part.more ? 1 : 0)));
    head.ip6f_ident = htonl(part.id);
    return ipv6_packet(from, to, IPPROTO_FRAGMENT, with_head(head, data), {});
  }
  ip6_hdr head{};
  head.ip6_flow = htonl(6U << 28);
  head.ip6_plen = htons(static_cast<std::uint16_t>(data.size()));
  head.ip6_nxt = static_cast<std::uint8_t>(protocol);
  head.ip6_hlim = 64;
  std::memcpy(&head.ip6_src, from.ip.data(), from.ip.size());
  std::memcpy(&head.ip6_dst, to.ip.data(), to.ip.size());
  return with_head(head, data);
}

Packet ip_packet(const InternetAddress& from, const InternetAddress& to, int protocol,
                 const Packet& data, const Part& part = {}) {
  if (to.ipv4()) return ipv4_packet(*from.ipv4(), *to.ipv4(), protocol, data, part);
  return ipv6_packet(from, to, protocol, data, part);
}

// Of IPv6, with the addresses.
std::uint16_t checksum(const InternetAddress& from, const InternetAddress& to, int protocol,
                       const Packet& data) {
  wire::Checksum sum;
  sum.add(data);
  if (!to.ipv4()) {
    sum.add(std::as_bytes(std::span(from.ip)));
    sum.add(std::as_bytes(std::span(to.ip)));
    std::array<std::byte, 8> rest{};
    wire::store32(rest.data(), static_cast<std::uint32_t>(data.size()));
    wire::store32(&rest[4], static_cast<std::uint32_t>(protocol));
    sum.add(rest);
  }
  return sum.wire_value();
}

// Over IPv4 without a checksum, as that permits. To `to`'s port from that of `from`.
Packet udp_packet(const InternetAddress& from, const InternetAddress& to, const Packet& data) {
  udphdr head{};
  head.source = htons(from.port);
  head.dest = htons(to.port);
  head.len = htons(static_cast<std::uint16_t>(sizeof head + data.size()));
  auto out = with_head(head, data);
  if (!to.ipv4()) wire::store16(&out[6], checksum(from, to, IPPROTO_UDP, out));
  return out;
}

// Until the time is over, so many times in a second.
template <typename Once>
void repeat(Attack& attack, const char* what, Once&& once) {
  const auto interval = std::chrono::nanoseconds(1'000'000'000) /
                        static_cast<long>(attack.rate != 0 ? attack.rate : kUsualRate);
  say_ready();
  std::uint64_t count = 0;
  for (auto next = std::chrono::steady_clock::now(); !attack.over(); next += interval) {
    std::this_thread::sleep_until(next);
    if (once(count)) ++count;
  }
  say(what, count);
}

// A message of the kinds by which hosts and routers report faults, about a packet.
Packet icmp_message(std::mt19937_64& dice, const Packet& about) {
  constexpr std::array<std::uint8_t, 6> kTypes{ICMP_DEST_UNREACH,  ICMP_DEST_UNREACH,
                                               ICMP_SOURCE_QUENCH, ICMP_REDIRECT,
                                               ICMP_TIME_EXCEEDED, ICMP_PARAMETERPROB};
  icmphdr head{};
  head.type = kTypes[dice() % kTypes.size()];
  head.code = static_cast<std::uint8_t>(dice() % 16);
  head.un.gateway = static_cast<std::uint32_t>(dice());
  if (head.type == ICMP_DEST_UNREACH && head.code == ICMP_FRAG_NEEDED)
    head.un.frag.mtu = htons(static_cast<std::uint16_t>(dice() % 1'500));
  return with_head(head, about);
}

Packet icmp6_message(std::mt19937_64& dice, const Packet& about) {
  constexpr std::uint8_t kRedirect = 137;
  constexpr std::array<std::uint8_t, 6> kTypes{ICMP6_DST_UNREACH,    ICMP6_DST_UNREACH,
                                               ICMP6_PACKET_TOO_BIG, kRedirect,
                                               ICMP6_TIME_EXCEEDED,  ICMP6_PARAM_PROB};
  icmp6_hdr head{};
  head.icmp6_type = kTypes[dice() % kTypes.size()];
  head.icmp6_code = static_cast<std::uint8_t>(dice() % 8);
  head.icmp6_mtu = htonl(static_cast<std::uint32_t>(dice() % 1'500));
  return with_head(head, about);
}

}  // namespace

void datagrams(Attack& attack) {
  const auto fd = open_socket(attack, SOCK_DGRAM, 0);
  repeat(attack, "datagrams", [&](std::uint64_t number) {
    const auto length = number % 2 == 0 ? attack.dice() % 100 : attack.dice() % kLongest;
    return send_to(fd, either(attack, number / 2), noise_of(attack.dice, length));
  });
}

// From 10,000 hosts with ports of every kind, from the peer, from the receiver itself, and from
// addresses that no host has.
void sources(Attack& attack) {
  const auto fd = open_socket(attack, SOCK_RAW, IPPROTO_RAW);
  repeat(attack, "sources", [&](std::uint64_t number) {
    const auto to = either(attack, number);
    const auto kind = attack.dice() % 8;
    auto from = kind == 0   ? either(attack, number + 1)
                : kind == 1 ? to
                : kind == 2 ? nobody(attack, attack.dice())
                            : somebody(attack, number);
    if (kind >= 4) from.port = static_cast<std::uint16_t>(attack.dice());
    const auto data = noise_of(attack.dice, attack.dice() % 200);
    return send_packet(fd, to, ip_packet(from, to, IPPROTO_UDP, udp_packet(from, to, data)));
  });
}

// Of every kind, about what the two send to each other, from hosts and routers of any address.
void reports(Attack& attack) {
  const auto fd = open_socket(attack, SOCK_RAW, IPPROTO_RAW);
  repeat(attack, "reports", [&](std::uint64_t number) {
    const auto to = either(attack, number), peer = either(attack, number + 1);
    const auto about = ip_packet(to, peer, IPPROTO_UDP, udp_packet(to, peer, Packet(40)));
    const auto from = attack.dice() % 2 == 0 ? peer : somebody(attack, attack.dice() % 256);
    const int protocol = attack.ipv6 ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP};
    auto icmp = attack.ipv6 ? icmp6_message(attack.dice, about) : icmp_message(attack.dice, about);
    wire::store16(&icmp[2], checksum(from, to, protocol, icmp));
    return send_packet(fd, to, ip_packet(from, to, protocol, icmp));
  });
}

// From the peer: of three datagrams in two fragments, one arrives whole, one in the wrong order,
// and of one a part is missing, or overlaps the other; and whole ones with a wrong checksum.
void fragments(Attack& attack) {
  const auto fd = open_socket(attack, SOCK_RAW, IPPROTO_RAW);
  constexpr std::size_t kCut = 64;
  repeat(attack, "fragments", [&](std::uint64_t number) {
    const auto to = either(attack, number), from = either(attack, number + 1);
    auto whole = udp_packet(from, to, noise_of(attack.dice, kCut + attack.dice() % 100));
    const auto kind = attack.dice() % 5;
    if (kind == 0) {
      wire::store16(&whole[6], static_cast<std::uint16_t>(1 + attack.dice() % 0xffff));
      return send_packet(fd, to, ip_packet(from, to, IPPROTO_UDP, whole));
    }
    const auto id = static_cast<unsigned>(1 + number % 0xffff);
    const auto cut = whole.begin() + kCut;
    const auto first =
        ip_packet(from, to, IPPROTO_UDP, {whole.begin(), cut}, {.more = true, .id = id});
    const auto place = static_cast<unsigned>(kind == 4 ? kCut / 16 : kCut / 8);
    const auto last =
        ip_packet(from, to, IPPROTO_UDP, {cut, whole.end()}, {.place = place, .id = id});
    if (kind == 1) return send_packet(fd, to, first);
    const bool turned = kind == 2;
    return send_packet(fd, to, turned ? last : first) && send_packet(fd, to, turned ? first : last);
  });
}

namespace {

// A request to connect to the honest program, padded as it says or, each fourth one, not at all.
Packet request_of(std::mt19937_64& dice) {
  constexpr std::uint32_t kUport = 3'000, kStu = 10;
  auto rc = wire::to_header(wire::RequestConnection{.i_slots = 64,
                                                    .i_bufsize = 12,
                                                    .i_key = static_cast<std::uint32_t>(dice() | 1),
                                                    .i_max_stu = kStu,
                                                    .r_uport = kUport});
  rc.s_port = static_cast<std::uint16_t>(1 + dice() % 64);
  const bool padded = dice() % 4 != 0;
  if (padded) rc.b_num = wire::Padding{.known = true, .proves = true, .stu = kStu}.word();
  Packet bytes(padded ? wire::padded_length(kStu) : wire::kHeaderSize);
  wire::encode(rc, bytes.data());
  return bytes;
}

// A frame for one of the first Ports, which has the form that its operation wants.
Packet frame_of(std::mt19937_64& dice) {
  using wire::Op;
  constexpr std::array kOps{Op::kConnectionAnswer,
                            Op::kRequestDisconnect,
                            Op::kDisconnectAnswer,
                            Op::kDisconnectComplete,
                            Op::kNoOperation,
                            Op::kRequestMemoryRegion,
                            Op::kMemoryRegionAvailable,
                            Op::kGet,
                            Op::kRequestToSend,
                            Op::kRequestAnswer,
                            Op::kRequestToReceive,
                            Op::kClearToSend,
                            Op::kData,
                            Op::kRequestState,
                            Op::kRequestStateResponse,
                            Op::kEnd,
                            Op::kEndAck};
  Packet bytes = noise_of(dice, wire::kHeaderSize);
  const auto op = kOps[dice() % kOps.size()];
  const bool refuses = dice() % 4 == 0;
  wire::store16(&bytes[wire::at::kOpFlags],
                static_cast<std::uint16_t>(wire::op_flags(op) |
                                           (refuses ? wire::flag::kReject : std::uint16_t{0})));
  wire::store16(&bytes[wire::at::kDPort], static_cast<std::uint16_t>(dice() % 16));
  wire::store16(&bytes[wire::at::kSPort], static_cast<std::uint16_t>(dice() % 16));
  wire::store16(&bytes[wire::at::kCksum], 0);
  if (op == Op::kData) bytes.resize(bytes.size() + (std::size_t{1} << dice() % 12));
  return bytes;
}

}  // namespace

// From the peer, and from many others.
void frames(Attack& attack) {
  const auto fd = open_socket(attack, SOCK_RAW, IPPROTO_RAW);
  repeat(attack, "frames", [&](std::uint64_t number) {
    const auto to = either(attack, number);
    const bool of_peer = attack.dice() % 2 == 0;
    const auto from = of_peer ? either(attack, number + 1) : somebody(attack, attack.dice());
    const auto data = attack.dice() % 2 == 0 ? request_of(attack.dice) : frame_of(attack.dice);
    return send_packet(fd, to, ip_packet(from, to, IPPROTO_UDP, udp_packet(from, to, data)));
  });
}

namespace {

// What goes over the loopback interface.
UniqueFd open_capture(const Attack& attack) {
  const auto type = htons(attack.ipv6 ? ETH_P_IPV6 : ETH_P_IP);
  UniqueFd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, type));
  sockaddr_ll at{};
  at.sll_family = AF_PACKET;
  at.sll_protocol = type;
  at.sll_ifindex = static_cast<int>(::if_nametoindex("lo"));
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    throw Cannot(std::string("nothing can be recorded: ") + std::strerror(errno));
  return fd;
}

// A hop less than all others: what was replayed is not recorded again.
constexpr std::uint8_t kReplayed = 63;
std::byte& hops_of(const Attack& attack, Packet& packet) {
  return packet[attack.ipv6 ? 7 : 8];
}

// The next datagram from one of the two to the other, whose number comes into `to`; empty: there is
// none now.
Packet record(const Attack& attack, const UniqueFd& capture, Packet& room, unsigned& to) {
  const auto length = ::recv(capture.get(), room.data(), room.size(), 0);
  const std::size_t head = attack.ipv6 ? sizeof(ip6_hdr) : sizeof(iphdr);
  const auto whole = static_cast<std::size_t>(std::max<ssize_t>(length, 0));
  if (whole < head + sizeof(udphdr)) return {};
  const auto protocol = std::to_integer<int>(room[attack.ipv6 ? 6 : 9]);
  const bool is_own = std::to_integer<std::uint8_t>(hops_of(attack, room)) == kReplayed;
  const auto port = wire::load16(&room[head]), to_port = wire::load16(&room[head + 2]);
  if (protocol != IPPROTO_UDP || is_own || port != kPort || to_port != kPort) return {};
  to = std::to_integer<unsigned>(room[attack.ipv6 ? 39 : 19]) - 1;
  return {room.begin() + static_cast<std::ptrdiff_t>(head + sizeof(udphdr)),
          room.begin() + static_cast<std::ptrdiff_t>(whole)};
}

}  // namespace

// To whom it came: from the sender with another port, as behind a NAT that has forgotten it, from
// another host, and from the receiver itself. Who has it come from the sender itself repeats it as
// any network may, and a program at level 0 sees such frames twice.
void replays(Attack& attack) {
  const auto fd = open_socket(attack, SOCK_RAW, IPPROTO_RAW);
  const auto capture = open_capture(attack);
  Packet room(1 << 16), heard;
  unsigned place = 0;
  repeat(attack, "replays", [&](std::uint64_t /*number*/) {
    // The newest of those that wait.
    for (int i = 0; i < 64; ++i)
      if (auto next = record(attack, capture, room, place); !next.empty()) heard = std::move(next);
    constexpr std::size_t kMost = 60'000;
    if (heard.empty() || heard.size() > kMost) return false;
    const auto to = either(attack, place);
    auto from = either(attack, place + 1);
    const auto kind = attack.dice() % 3;
    if (kind == 0) from.port = static_cast<std::uint16_t>(9'000 + attack.dice() % 16);
    if (kind == 1) from = somebody(attack, attack.dice());
    if (kind == 2) from = to;
    auto packet = ip_packet(from, to, IPPROTO_UDP, udp_packet(from, to, heard));
    hops_of(attack, packet) = std::byte{kReplayed};
    return send_packet(fd, to, packet);
  });
}

}  // namespace stp::hostile
