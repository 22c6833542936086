// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/frame.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "stp/wire/big_endian.h"
#include "stp/wire/checksum.h"
#include "stp/wire/syntax.h"

namespace stp::wire {
namespace {

// In an Ethernet II frame a shorter STU (with append) would be lost in the padding.
constexpr std::size_t kMinEthernet2Stu = kMinPayload - kHeaderSize;

// protocol: 2.4, 2.5
bool goes_as_snap(const Header& header, std::size_t stu_length) {
  return header.op() == Op::kData && stu_length < kMinEthernet2Stu;
}

// `body`: what follows the Schedule Header.
// protocol: 8.7
Counter split_data(Bytes body, std::size_t longest_stu, Frame& out) {
  const std::size_t append = out.header.has(flag::kAppend) ? kAppendSize : 0;
  if (body.size() < append) return Counter::kTruncated;
  out.stu = body.first(body.size() - append);
  out.append = body.last(append);
  out.option = {};
  return out.stu.size() > longest_stu ? Counter::kStuTooLong : Counter::kNone;
}

// Fewer bytes than an option payload are padding in Ethernet II, where nothing tells the length;
// 802.3 states it, so there they are an error.
// protocol: 2.7, 3.13
Counter split_control(Bytes body, Frame& out) {
  if (body.size() < kOptionSize && !out.snap) body = {};
  if (!body.empty() && body.size() != kOptionSize) return Counter::kBadControlLength;
  if (body.empty() && needs_operands(out.header)) return Counter::kBadControlLength;
  out.option = body;
  out.stu = {};
  out.append = {};
  return Counter::kNone;
}

}  // namespace

// The Cksum is looked at as soon as it is known which bytes it covers: before any field is believed
// but those that tell the lengths, and after the checks that bound the work.
// protocol: 4.3, 4.5, 12.1, 12.2
Counter parse(Bytes frame, unsigned max_stu, Frame& out) {
  assert(max_stu <= kMaxMaxStu);
  Bytes payload;
  if (const Counter why = unwrap(frame, out, payload); why != Counter::kNone) return why;

  if (payload.size() < kHeaderSize) return Counter::kTruncated;
  out.header = decode(payload.data());
  if (const Counter why = check_op(out.header); why != Counter::kNone) return why;

  const Bytes body = payload.subspan(kHeaderSize);
  const Counter why = out.header.op() == Op::kData
                          ? split_data(body, std::size_t{1} << max_stu, out)
                          : split_control(body, out);
  if (why != Counter::kNone) return why;

  if (out.header.cksum != 0) {
    Checksum checksum;
    checksum.add(
        payload.first(kHeaderSize + out.option.size() + out.stu.size() + out.append.size()));
    if (!checksum.verified()) return Counter::kBadChecksum;
  }
  return check_fields(out.header);
}

std::size_t head_size(const Header& header, std::size_t stu_length, bool tagged) {
  return kEthernetSize + (tagged ? kVlanSize : 0) +
         (goes_as_snap(header, stu_length) ? kSnapSize : 0) + kHeaderSize;
}

std::size_t emit_head(const Envelope& envelope, const Header& header,
                      std::span<const Bytes> payload, std::byte* head) {
  std::size_t length = 0;
  for (const Bytes piece : payload) length += piece.size();
  const LinkHeader link{envelope.dst, envelope.src, envelope.vlan, goes_as_snap(header, length)};
  std::byte* const at_header = head + wrap(link, kHeaderSize + length, head);

  encode(header, at_header);
  store16(at_header + at::kCksum, 0);
  if (envelope.checksum) {
    Checksum checksum;
    checksum.add({at_header, kHeaderSize});
    for (const Bytes piece : payload) checksum.add(piece);
    store16(at_header + at::kCksum, checksum.wire_value());
  }
  return link.size() + kHeaderSize;
}

std::size_t emit(const Envelope& envelope, const Header& header, Bytes payload, Bytes append,
                 MutableBytes out) {
  const std::array<Bytes, 2> pieces = {payload, append};
  const auto body =
      out.begin() + static_cast<std::ptrdiff_t>(emit_head(envelope, header, pieces, out.data()));
  auto end = std::ranges::copy(payload, body).out;
  end = std::ranges::copy(append, end).out;
  const auto length = static_cast<std::size_t>(end - out.begin());
  const std::size_t padded = std::max(length, kEthernetSize + kMinPayload);
  std::ranges::fill(out.subspan(length, padded - length), std::byte{0});
  return padded;
}

}  // namespace stp::wire
