// SPDX-License-Identifier: BSD-3-Clause
// Parses frames; inline, for callers that do so once per frame. Equals parse() of frame.h and part
// of its caller.
#pragma once

#include "stp/base/assert.h"
#include "stp/wire/checksum.h"
#include "stp/wire/frame.h"
#include "stp/wire/syntax.h"

namespace stp::wire {

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

// Fewer bytes than an option payload are padding in Ethernet II, which does not state the length.
// 802.3 states it, so there they are an error.
// protocol: 2.7, 3.13
inline DropReason split_control(Bytes body, Frame& out) {
  if (body.size() < kOptionSize && !out.snap) body = {};
  if (!body.empty() && body.size() != kOptionSize) return DropReason::kBadControlLength;
  if (body.empty() && needs_operands(out.header)) return DropReason::kBadControlLength;
  out.option = body;
  out.stu = {};
  out.append = {};
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
