// SPDX-License-Identifier: BSD-3-Clause
// Frames: converts between bytes of an Ethernet link and header, option payload, STU and append.
#pragma once

#include <optional>

#include "stp/base/assert.h"
#include "stp/counters.h"
#include "stp/types.h"
#include "stp/wire/checksum.h"
#include "stp/wire/ethernet.h"
#include "stp/wire/header.h"
#include "stp/wire/syntax.h"

namespace stp::wire {

// A frame that passed every check of docs/protocol.md section 12. The spans point into the frame.
struct Frame : LinkHeader {
  Header header;
  Bytes option;         // control operations: empty or kOptionSize bytes
  Bytes stu;            // DATA: the user's bytes
  Bytes append;         // DATA: empty or kAppendSize bytes
  bool padded = false;  // control operations: as padding_of() says
};

// Parses a frame and checks its form: encapsulation, lengths, op, flags, exponents, checksum.
// Checks nothing that depends on state except the longest STU that this receiver announced
// (2^max_stu). Returns DropReason::kNone and fills `out`, or returns the reason to drop. `apart`:
// the bytes after the Schedule Header, if the frame was never contiguous; then `frame` ends with
// that header.
DropReason parse(Bytes frame, unsigned max_stu, Frame& out, Bytes apart = {});

// How to send one operation on the link.
struct Envelope {
  MacAddr dst;
  MacAddr src;
  std::optional<std::uint16_t> vlan;
  bool checksum = false;  // fill Cksum (else it is sent as 0)
};

// Bytes that emit_head writes for an STU (with append) of `stu_length` bytes, or for a control op.
std::size_t head_size(const Header& header, std::size_t stu_length, bool tagged);

// Writes everything before the payload: Ethernet II, or 802.3 + SNAP for a short DATA, then the
// header. `payload` is the option payload of a control operation, or the STU's pieces in order
// (STU, append); they are summed for the checksum, never copied. `head` must hold kMaxHeadSize
// bytes. Returns the number of bytes written.
std::size_t emit_head(const Envelope& envelope, const Header& header,
                      std::span<const Bytes> payload, std::byte* head);

// Convenience for tests, tools and slow paths: the whole frame in one buffer, padded to Ethernet's
// 60-byte minimum. Returns its length; `out` must be large enough.
std::size_t emit(const Envelope& envelope, const Header& header, Bytes payload, Bytes append,
                 MutableBytes out);

// ---- inline, for callers that do so once per frame: what emit_head() and parse() consist of

// Shorter STUs (with append) leave as SNAP: in an Ethernet II frame they could not be told from the
// padding.
// protocol: 2.4, 2.5
inline bool goes_as_snap(const Header& header, std::size_t stu_length) {
  return stu_length < kMinPayload - kHeaderSize && header.op() == Op::kData;
}

// Takes no Envelope, so copies none. Sets Cksum to 0. `length`: of everything that follows. Returns
// the place of the Schedule Header.
[[gnu::always_inline]] inline std::byte* emit_unsummed(const MacAddr& dst, const MacAddr& src,
                                                       const std::optional<std::uint16_t>& vlan,
                                                       const Header& header, std::size_t length,
                                                       std::byte* head) {
  std::byte* const at_header =
      wrap_inline(dst, src, vlan, goes_as_snap(header, length), kHeaderSize + length, head);
  encode(header, at_header);
  store16(at_header + at::kCksum, 0);
  return at_header;
}
// Fills in the Cksum afterwards.
void fill_checksum(std::byte* at_header, std::span<const Bytes> payload);

// `body`: the bytes after the Schedule Header.
// protocol: 8.7
inline DropReason split_data(Bytes body, std::size_t longest_stu, Frame& out) {
  const std::size_t append = out.header.has(flag::kAppend) ? kAppendSize : 0;
  if (body.size() < append) return DropReason::kTruncated;
  out.stu = body.first(body.size() - append);
  out.append = body.last(append);
  out.option = {};
  return out.stu.size() > longest_stu ? DropReason::kStuTooLong : DropReason::kNone;
}

// `body` is neither empty nor an option payload.
// protocol: 13.20
DropReason split_padded(Bytes body, Frame& out);

// Fewer bytes than an option payload are padding in Ethernet II, which does not state the length.
// 802.3 states it, so there they are an error.
// protocol: 2.7, 3.13
inline DropReason split_control(Bytes body, Frame& out) {
  if (body.size() < kOptionSize && !out.snap) body = {};
  if (!body.empty() && body.size() != kOptionSize) return split_padded(body, out);
  if (body.empty() && needs_operands(out.header)) return DropReason::kBadControlLength;
  out.option = body;
  out.stu = {};
  out.append = {};
  out.padded = false;
  return DropReason::kNone;
}

// Parses everything after the encapsulation. DATA has its own instance, where the properties of the
// operation are constants. The Cksum is checked as soon as the bytes that it covers are known:
// before any field is trusted except those that give the lengths, and after the checks that limit
// the work.
// protocol: 4.3, 4.5, 12.1, 12.2
template <bool kIsData>
DropReason parse_payload(Bytes payload, Bytes apart, unsigned max_stu, Frame& out) {
  const Op op = kIsData ? Op::kData : out.header.op();
  if (const DropReason why = check_op(out.header, op); why != DropReason::kNone) return why;

  const Bytes body = apart.empty() ? payload.subspan(kHeaderSize) : apart;
  const DropReason why =
      kIsData ? split_data(body, std::size_t{1} << max_stu, out) : split_control(body, out);
  if (why != DropReason::kNone) return why;

  if (out.header.cksum != 0) {
    Checksum checksum;
    checksum.add(payload.first(kHeaderSize));
    checksum.add(body.first(out.option.size() + out.stu.size() + out.append.size()));
    if (!checksum.verified()) return DropReason::kBadChecksum;
  }
  return check_fields(out.header, op);
}

[[gnu::always_inline]] inline DropReason parse_inline(Bytes frame, unsigned max_stu, Frame& out,
                                                      Bytes apart) {
  STP_ASSERT(max_stu <= kMaxMaxStu, "a link's Max_STU is legal");
  Bytes payload;
  if (const DropReason why = unwrap(frame, out, payload); why != DropReason::kNone) return why;
  if (payload.size() < kHeaderSize) return DropReason::kTruncated;
  out.header = decode(payload.data());
  return out.header.op() == Op::kData ? parse_payload<true>(payload, apart, max_stu, out)
                                      : parse_payload<false>(payload, apart, max_stu, out);
}

}  // namespace stp::wire
