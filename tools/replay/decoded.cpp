// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/decoded.h"

#include <algorithm>

#include "stp/wire/big_endian.h"
#include "tools/replay/datagram.h"

namespace stp::replay {
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
