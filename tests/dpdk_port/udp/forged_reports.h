// SPDX-License-Identifier: BSD-3-Clause
// ICMP messages as hosts and routers send them, of IPv4. Only root may send such.
#pragma once

#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <span>

#include "dpdk_port/link/address.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/checksum.h"

namespace stp::port {

class ForgedReports {
 public:
  ForgedReports() : fd_(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP)) {}
  ~ForgedReports() {
    if (fd_ >= 0) ::close(fd_);
  }
  ForgedReports(const ForgedReports&) = delete;
  ForgedReports& operator=(const ForgedReports&) = delete;

  [[nodiscard]] bool may_be_sent() const { return fd_ >= 0; }

  // As `about` would report to `to` of what `to` sent there: a datagram, or without ports a packet
  // of IP protocol 118. False: it could not be sent.
  [[nodiscard]] bool send(const InternetAddress& about, const InternetAddress& to,
                          std::uint8_t code, std::uint16_t mtu = 0) const {
    constexpr std::uint8_t kUdp = IPPROTO_UDP, kStp = 118;
    struct {
      icmphdr icmp;
      iphdr ip;
      udphdr udp;
    } packet{};
    packet.icmp.type = ICMP_DEST_UNREACH;
    packet.icmp.code = code;
    packet.icmp.un.frag.mtu = htons(mtu);
    packet.ip.version = 4;
    packet.ip.ihl = sizeof packet.ip / 4;
    packet.ip.tot_len = htons(sizeof packet.ip + sizeof packet.udp);
    packet.ip.protocol = to.port != 0 ? kUdp : kStp;
    packet.ip.saddr = htonl(to.ipv4()->value);
    packet.ip.daddr = htonl(about.ipv4()->value);
    packet.udp.source = htons(to.port);
    packet.udp.dest = htons(about.port);
    wire::Checksum sum;
    sum.add(std::as_bytes(std::span(&packet, 1)));
    wire::store16(reinterpret_cast<std::byte*>(&packet.icmp.checksum), sum.wire_value());
    sockaddr_storage name{};
    const auto length = to_socket_address(to, AF_INET, name);
    reinterpret_cast<sockaddr_in*>(&name)->sin_port = 0;
    return ::sendto(fd_, &packet, sizeof packet, 0, reinterpret_cast<const sockaddr*>(&name),
                    length) == static_cast<ssize_t>(sizeof packet);
  }

 private:
  const int fd_;
};

}  // namespace stp::port
