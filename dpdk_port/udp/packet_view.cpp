// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/packet_view.h"

#include <netinet/in.h>

#include <array>
#include <span>

#include "stp/wire/big_endian.h"
#include "stp/wire/checksum.h"
#include "stp/wire/layout.h"

namespace stp::port {
namespace {

constexpr std::size_t kIpv4Head = 20, kUdpHead = 8;
constexpr std::uint16_t kIpv4Type = 0x0800, kIpv6Type = 0x86dd;
constexpr std::uint8_t kTimeToLive = 64;

// Appends fields to a header.
class PacketHead {
 public:
  explicit PacketHead(std::vector<std::byte>& out) : out_(out) {}
  void put16(std::size_t value) {
    const std::size_t at = out_.size();
    out_.resize(at + 2);
    wire::store16(&out_[at], static_cast<std::uint16_t>(value));
  }
  template <typename Octets>
  void put(const Octets& octets) {
    for (const std::uint8_t octet : octets) out_.push_back(std::byte{octet});
  }

 private:
  std::vector<std::byte>& out_;
};

std::span<const std::uint8_t> ip_octets(const InternetAddress& address, bool four) {
  return std::span(address.ip).subspan(four ? 12 : 0);
}

bool is_ipv4(const PacketView::Station& from, const PacketView::Station& to) {
  return from.address.ipv4() && to.address.ipv4();
}

}  // namespace

// protocol: 13.1, 13.15
void PacketView::show(Tap& tap, const Station& from, const Station& to, Bytes head, Bytes rest,
                      Way way) {
  packet_.clear();
  PacketHead out(packet_);
  out.put(to.name.octets);
  out.put(from.name.octets);
  put_ip(from, to, (udp_ ? kUdpHead : 0) + head.size() + rest.size());
  if (udp_)
    put_udp(from, to, head, rest);
  else
    packet_.insert(packet_.end(), head.begin(), head.end());
  tap.frame(packet_, rest, way == Way::kSent);
}

// `length`: of what follows the header.
void PacketView::put_ip(const Station& from, const Station& to, std::size_t length) {
  const bool four = is_ipv4(from, to);
  const unsigned protocol = udp_ ? IPPROTO_UDP : int{wire::kIpProtocol};
  const std::size_t ip_at = wire::kEthernetSize;
  PacketHead out(packet_);
  if (four) {
    for (const std::size_t word : {std::size_t{kIpv4Type}, std::size_t{0x4500}, kIpv4Head + length})
      out.put16(word);
    // No identification, Don't Fragment, and the checksum, which covers the header only.
    for (const unsigned word : {0U, 0x4000U, unsigned{kTimeToLive} << 8 | protocol, 0U})
      out.put16(word);
  } else {
    for (const std::size_t word :
         {std::size_t{kIpv6Type}, std::size_t{0x6000}, std::size_t{0}, length})
      out.put16(word);
    out.put16(protocol << 8 | kTimeToLive);
  }
  out.put(ip_octets(from.address, four));
  out.put(ip_octets(to.address, four));
  if (!four) return;
  wire::Checksum sum;
  sum.add(Bytes(packet_).subspan(ip_at, kIpv4Head));
  wire::store16(&packet_[ip_at + 10], sum.wire_value());
}

void PacketView::put_udp(const Station& from, const Station& to, Bytes head, Bytes rest) {
  const std::size_t length = kUdpHead + head.size() + rest.size();
  const std::size_t udp_at = packet_.size();
  PacketHead out(packet_);
  for (const std::size_t word :
       {std::size_t{from.address.port}, std::size_t{to.address.port}, length, std::size_t{0}})
    out.put16(word);
  packet_.insert(packet_.end(), head.begin(), head.end());
  // The checksum of UDP covers the addresses, the protocol and the length, too.
  wire::Checksum sum;
  const std::size_t addresses = 2 * ip_octets(from.address, is_ipv4(from, to)).size();
  std::array<std::byte, 4> pseudo{};
  wire::store16(pseudo.data(), IPPROTO_UDP);
  wire::store16(&pseudo[2], static_cast<std::uint16_t>(length));
  sum.add(pseudo);
  sum.add(Bytes(packet_).subspan(udp_at - addresses));
  sum.add(rest);
  wire::store16(&packet_[udp_at + 6], sum.wire_value());
}

}  // namespace stp::port
