// SPDX-License-Identifier: BSD-3-Clause
// What anybody in the network may send to two stpd's over UDP, at 127.0.0.1 and 127.0.0.2, which
// have a connection. No move uses the socket of a stpd.
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "libst/os/unique_fd.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/checksum.h"
#include "stp/wire/layout.h"
#include "tests/hostile/cannot.h"
#include "tests/hostile/moves.h"

namespace stp::hostile {
namespace {

using Packet = std::vector<std::byte>;

constexpr std::uint32_t kFirstStpd = INADDR_LOOPBACK, kSecondStpd = INADDR_LOOPBACK + 1;
constexpr std::uint16_t kPort = wire::kUdpPort;
constexpr std::uint64_t kUsualRate = 10'000;
constexpr std::size_t kLongest = 3'000;

UniqueFd open_socket(int type, int protocol) {
  UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC, protocol));
  if (!fd) throw Cannot(std::string("no such socket: ") + std::strerror(errno));
  return fd;
}

bool send_to(const UniqueFd& fd, std::uint32_t to, std::uint16_t port, const Packet& bytes) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(to);
  name.sin_port = htons(port);
  return ::sendto(fd.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&name),
                  sizeof name) == static_cast<ssize_t>(bytes.size());
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

// `place`: of a fragment, in words of 8 bytes, with IP_MF if others follow; `id`: that of its
// whole.
Packet ip_packet(std::uint32_t from, std::uint32_t to, int protocol, const Packet& data,
                 unsigned place = 0, unsigned id = 0) {
  Packet out(sizeof(iphdr));
  iphdr head{};
  head.version = 4;
  head.ihl = sizeof head / 4;
  head.tot_len = htons(static_cast<std::uint16_t>(sizeof head + data.size()));
  head.id = htons(static_cast<std::uint16_t>(id));
  head.frag_off = htons(static_cast<std::uint16_t>(place));
  head.ttl = 64;
  head.protocol = static_cast<std::uint8_t>(protocol);
  head.saddr = htonl(from);
  head.daddr = htonl(to);
  std::memcpy(out.data(), &head, sizeof head);
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

Packet udp_packet(std::uint16_t from, std::uint16_t to, const Packet& data) {
  Packet out(sizeof(udphdr));
  udphdr head{};  // without a checksum, as IPv4 permits
  head.source = htons(from);
  head.dest = htons(to);
  head.len = htons(static_cast<std::uint16_t>(sizeof head + data.size()));
  std::memcpy(out.data(), &head, sizeof head);
  out.insert(out.end(), data.begin(), data.end());
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

std::uint32_t either(std::uint64_t number) {
  return number % 2 == 0 ? kFirstStpd : kSecondStpd;
}

}  // namespace

void datagrams(Attack& attack) {
  const auto fd = open_socket(SOCK_DGRAM, 0);
  repeat(attack, "datagrams", [&](std::uint64_t number) {
    const auto length = number % 2 == 0 ? attack.dice() % 100 : attack.dice() % kLongest;
    return send_to(fd, either(number / 2), kPort, noise_of(attack.dice, length));
  });
}

// From 10,000 hosts with ports of every kind, from the peer, and from the receiver itself.
void sources(Attack& attack) {
  const auto fd = open_socket(SOCK_RAW, IPPROTO_RAW);
  constexpr std::uint32_t kHosts = 0x0a010000;
  repeat(attack, "sources", [&](std::uint64_t number) {
    const auto to = either(number);
    const auto kind = attack.dice() % 8;
    const auto from = kind == 0   ? either(number + 1)
                      : kind == 1 ? to
                                  : kHosts + static_cast<std::uint32_t>(number % 10'000);
    const auto port = kind < 4 ? kPort : static_cast<std::uint16_t>(attack.dice());
    const auto data = noise_of(attack.dice, attack.dice() % 200);
    return send_to(fd, to, 0, ip_packet(from, to, IPPROTO_UDP, udp_packet(port, kPort, data)));
  });
}

// Of every kind, about what the two send to each other, from hosts and routers of any address.
void reports(Attack& attack) {
  const auto fd = open_socket(SOCK_RAW, IPPROTO_RAW);
  constexpr std::array<std::uint8_t, 6> kTypes{ICMP_DEST_UNREACH,  ICMP_DEST_UNREACH,
                                               ICMP_SOURCE_QUENCH, ICMP_REDIRECT,
                                               ICMP_TIME_EXCEEDED, ICMP_PARAMETERPROB};
  repeat(attack, "reports", [&](std::uint64_t number) {
    const auto to = either(number), peer = either(number + 1);
    Packet icmp(sizeof(icmphdr));
    icmphdr head{};
    head.type = kTypes[attack.dice() % kTypes.size()];
    head.code = static_cast<std::uint8_t>(attack.dice() % 16);
    head.un.gateway = static_cast<std::uint32_t>(attack.dice());
    if (head.type == ICMP_DEST_UNREACH && head.code == ICMP_FRAG_NEEDED)
      head.un.frag.mtu = htons(static_cast<std::uint16_t>(attack.dice() % 1'500));
    std::memcpy(icmp.data(), &head, sizeof head);
    const auto about = ip_packet(to, peer, IPPROTO_UDP, udp_packet(kPort, kPort, Packet(40)));
    icmp.insert(icmp.end(), about.begin(), about.end());
    wire::Checksum sum;
    sum.add(icmp);
    wire::store16(&icmp[2], sum.wire_value());
    const auto from = attack.dice() % 2 == 0 ? peer : 0x0a020000 + attack.dice() % 256;
    return send_to(fd, to, 0, ip_packet(static_cast<std::uint32_t>(from), to, IPPROTO_ICMP, icmp));
  });
}

// From the peer: of three datagrams in two fragments, one arrives whole, one in the wrong order,
// and of one a part is missing, or overlaps the other; and whole ones with a wrong checksum.
void fragments(Attack& attack) {
  const auto fd = open_socket(SOCK_RAW, IPPROTO_RAW);
  constexpr std::size_t kCut = 64;
  repeat(attack, "fragments", [&](std::uint64_t number) {
    const auto to = either(number), from = either(number + 1);
    auto whole = udp_packet(kPort, kPort, noise_of(attack.dice, kCut + attack.dice() % 100));
    const auto kind = attack.dice() % 5;
    if (kind == 0) {
      wire::store16(&whole[6], static_cast<std::uint16_t>(1 + attack.dice() % 0xffff));
      return send_to(fd, to, 0, ip_packet(from, to, IPPROTO_UDP, whole));
    }
    const auto id = static_cast<unsigned>(1 + number % 0xffff);
    const auto cut = whole.begin() + kCut;
    const auto first = ip_packet(from, to, IPPROTO_UDP, {whole.begin(), cut}, IP_MF, id);
    const auto place = static_cast<unsigned>(kind == 4 ? kCut / 16 : kCut / 8);
    const auto last = ip_packet(from, to, IPPROTO_UDP, {cut, whole.end()}, place, id);
    if (kind == 1) return send_to(fd, to, 0, first);
    const bool turned = kind == 2;
    return send_to(fd, to, 0, turned ? last : first) && send_to(fd, to, 0, turned ? first : last);
  });
}

}  // namespace stp::hostile
