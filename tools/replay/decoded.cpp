// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/decoded.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "stp/wire/big_endian.h"
#include "stp/wire/layout.h"

namespace stp::replay {
namespace {

constexpr std::uint16_t kIpv4Type = 0x0800, kIpv6Type = 0x86dd;
constexpr std::uint8_t kUdpProtocol = 17;
constexpr std::size_t kIpv4Head = 20, kIpv6Head = 40, kUdpHead = 8, kMacs = 12;

struct Packet {
  Bytes source, destination;  // addresses
  std::uint8_t protocol;
  std::size_t length;  // of what follows the IP header
  Bytes rest;          // that, as far as it was captured
};

bool may_have_stp(std::byte protocol) {
  return protocol == std::byte{kUdpProtocol} || protocol == std::byte{wire::kIpProtocol};
}

Packet packet(Bytes source, Bytes destination, std::byte protocol, std::size_t length, Bytes rest) {
  return {source, destination, std::to_integer<std::uint8_t>(protocol), length,
          rest.first(std::min(rest.size(), length))};
}

std::optional<Packet> ipv4_in(Bytes ip) {
  if (ip.size() < kIpv4Head) return std::nullopt;
  const auto first = std::to_integer<unsigned>(ip[0]);
  const std::size_t head = (first & 0xf) * std::size_t{4};
  // More fragments, or an offset.
  const bool fragment = (wire::load16(ip.data() + 6) & 0x3fff) != 0;
  const std::size_t length = wire::load16(ip.data() + 2);
  if (first >> 4 != 4 || head < kIpv4Head || head > ip.size() || length < head || fragment ||
      !may_have_stp(ip[9]))
    return std::nullopt;
  return packet(ip.subspan(12, 4), ip.subspan(16, 4), ip[9], length - head, ip.subspan(head));
}

std::optional<Packet> ipv6_in(Bytes ip) {
  if (ip.size() < kIpv6Head || std::to_integer<unsigned>(ip[0]) >> 4 != 6 || !may_have_stp(ip[6]))
    return std::nullopt;
  return packet(ip.subspan(8, 16), ip.subspan(24, 16), ip[6], wire::load16(ip.data() + 4),
                ip.subspan(kIpv6Head));
}

std::optional<Packet> packet_in(Bytes frame) {
  if (frame.size() < kMacs + 2) return std::nullopt;
  auto type = wire::load16(frame.data() + kMacs);
  auto rest = frame.subspan(kMacs + 2);
  if (type == wire::kVlanEtherType && rest.size() >= wire::kVlanSize) {
    type = wire::load16(rest.data() + 2);
    rest = rest.subspan(wire::kVlanSize);
  }
  if (type == kIpv4Type) return ipv4_in(rest);
  if (type == kIpv6Type) return ipv6_in(rest);
  return std::nullopt;
}

// The same for an address in all captures.
MacAddr name_of(Bytes address, std::uint16_t port) {
  constexpr std::uint64_t kIpv4Names = 0x0204'0000'0000, kPrime = 0x100'0000'01b3;
  if (address.size() == 4 && (port == wire::kUdpPort || port == 0))
    return MacAddr::from_u64(kIpv4Names | wire::load32(address.data()));
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325 ^ port;
  for (const auto octet : address) hash = (hash ^ std::to_integer<std::uint64_t>(octet)) * kPrime;
  MacAddr name = MacAddr::from_u64(hash ^ hash >> 32);
  name.octets[0] = static_cast<std::uint8_t>((name.octets[0] & 0xfc) | 0x82);
  return name;
}

bool of_stp(const CapturedFrame& frame, std::uint16_t from, std::uint16_t to) {
  const auto ours = [&](std::uint16_t port) {
    return port == wire::kUdpPort ||
           std::ranges::find(frame.udp_ports, port) != frame.udp_ports.end();
  };
  return frame.over_udp || ours(from) || ours(to);
}

struct Datagram {
  std::uint16_t from = 0, to = 0;  // UDP ports; 0: there are none
  std::size_t length = 0;
  Bytes data;  // as far as it was captured
};

// nullopt: it is not STP's, or nothing of it was captured.
// protocol: 13.1, 13.2, 13.15
std::optional<Datagram> datagram_of(const Packet& packet, const CapturedFrame& frame) {
  if (packet.protocol == wire::kIpProtocol) return Datagram{0, 0, packet.length, packet.rest};
  if (packet.rest.size() < kUdpHead) return std::nullopt;
  const auto* const udp = packet.rest.data();
  const auto from = wire::load16(udp), to = wire::load16(udp + 2);
  const std::size_t length = wire::load16(udp + 4);
  if (!of_stp(frame, from, to) || length < kUdpHead) return std::nullopt;
  return Datagram{from, to, length - kUdpHead,
                  packet.rest.first(std::min(packet.rest.size(), length)).subspan(kUdpHead)};
}

}  // namespace

std::optional<CapturedFrame> datagram_in(const CapturedFrame& frame,
                                         std::vector<std::byte>& buffer) {
  const auto packet = packet_in(frame.bytes);
  const auto found = packet ? datagram_of(*packet, frame) : std::nullopt;
  if (!found) return std::nullopt;
  buffer.clear();
  for (const auto& name :
       {name_of(packet->destination, found->to), name_of(packet->source, found->from)})
    for (const auto octet : name.octets) buffer.push_back(std::byte{octet});
  buffer.push_back(std::byte{wire::kEtherType >> 8});
  buffer.push_back(std::byte{wire::kEtherType & 0xff});
  buffer.insert(buffer.end(), found->data.begin(), found->data.end());
  auto out = frame;
  out.bytes = buffer;
  out.wire_length = wire::kEthernetSize + found->length;
  out.ends = DatagramEnds{packet->source, packet->destination, found->from, found->to};
  return out;
}

std::string end_text(Bytes address, std::uint16_t port) {
  const bool four = address.size() == 4;
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(four ? AF_INET : AF_INET6, address.data(), text.data(), text.size());
  const std::string host = text.data();
  return (four ? host : "[" + host + "]") + (port == 0 ? "" : "/" + std::to_string(port));
}

namespace {

// The longest possible frame. Limits the memory for frames that a hostile file claims to be longer.
constexpr std::size_t kLongestFrame =
    wire::kMaxHeadSize + (std::size_t{1} << wire::kMaxMaxStu) + wire::kAppendSize;

// The types of tags of providers (802.1ad, and one that is older).
constexpr std::uint16_t kProviderTag = 0x88a8, kOldProviderTag = 0x9100;
constexpr std::size_t kAddresses = 2 * sizeof(MacAddr::octets);

}  // namespace

const char* Decoded::error() const {
  if (cut_short) return "cut";
  return reason == DropReason::kNone ? nullptr : name_of(reason);
}

// The Node's parser decides about the form. This adds what the Node does not need.
void Decoder::decode_whole(Bytes bytes, Decoded& out) const {
  out.reason = wire::parse(bytes, wire::kMaxMaxStu, out.frame);
  wire::LinkHeader link;
  Bytes payload;
  const auto wrapped = wire::unwrap(bytes, link, payload);
  out.has_link = wrapped == DropReason::kNone || wrapped == DropReason::kBadSource;
  // A frame that ends too early has its addresses, though a Node does not look at them.
  if (wrapped == DropReason::kTruncated && bytes.size() >= wire::kEthernetSize) {
    static_cast<wire::LinkHeader&>(out.frame) = link;
    out.has_link = true;
  }
  if (wrapped != DropReason::kNone || payload.size() < wire::kHeaderSize) return;
  out.has_header = true;
  if (out.frame.header.cksum == 0) return;
  out.cksum = out.reason == DropReason::kBadChecksum ? Cksum::kBad
              : out.reason == DropReason::kNone      ? Cksum::kGood
                                                     : Cksum::kUnknown;
}

// A Node takes frames with at most one tag. Of two, the outer one is the provider's: without it,
// the frame is what the stations exchange.
CapturedFrame Decoder::without_outer_tag(const CapturedFrame& captured, Decoded& out) {
  const auto bytes = captured.bytes;
  if (bytes.size() < kAddresses + wire::kVlanSize + 2) return captured;
  const auto type = wire::load16(bytes.data() + kAddresses);
  const auto next = wire::load16(bytes.data() + kAddresses + wire::kVlanSize);
  const bool provider = type == kProviderTag || type == kOldProviderTag;
  if (!provider && (type != wire::kVlanEtherType || next != wire::kVlanEtherType)) return captured;
  out.outer_vlan = wire::load16(bytes.data() + kAddresses + 2);
  untagged_.assign(bytes.begin(), bytes.begin() + kAddresses);
  untagged_.insert(untagged_.end(), bytes.begin() + kAddresses + wire::kVlanSize, bytes.end());
  auto inner = captured;
  inner.bytes = untagged_;
  inner.wire_length -= wire::kVlanSize;
  return inner;
}

Decoded Decoder::decode(const CapturedFrame& as_captured) {
  Decoded out;
  const auto untagged = without_outer_tag(as_captured, out);
  const auto captured = datagram_in(untagged, datagram_).value_or(untagged);
  out.number = captured.number;
  out.time = captured.time;
  out.epoch = captured.epoch;
  out.wire_length = as_captured.wire_length;
  out.cut = captured.cut();
  out.ends = captured.ends;
  if (!out.cut) {
    decode_whole(captured.bytes, out);
    return out;
  }
  // Fills the missing bytes with zeros, so that all lengths are those on the wire.
  whole_.assign(std::min(captured.wire_length, kLongestFrame), std::byte{0});
  const auto held = std::min(captured.bytes.size(), whole_.size());
  std::copy_n(captured.bytes.begin(), held, whole_.begin());
  wire::LinkHeader link;
  Bytes payload;
  const auto wrapped = wire::unwrap(whole_, link, payload);
  const auto header_end = link.size() + wire::kHeaderSize;
  if (held < wire::kEthernetSize || (wrapped == DropReason::kNone && held < header_end)) {
    out.cut_short = true;
    if (held >= wire::kEthernetSize) {
      static_cast<wire::LinkHeader&>(out.frame) = link;
      out.has_link = true;
    }
    return out;
  }
  out.payload_held = held - std::min(held, header_end);
  // The checksum cannot be verified, because bytes are missing.
  std::uint16_t cksum = 0;
  if (wrapped == DropReason::kNone) {
    auto* const at = whole_.data() + link.size() + wire::at::kCksum;
    cksum = wire::load16(at);
    wire::store16(at, 0);
  }
  decode_whole(whole_, out);
  out.frame.header.cksum = cksum;
  if (cksum != 0) out.cksum = Cksum::kUnknown;
  return out;
}

}  // namespace stp::replay
