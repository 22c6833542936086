// SPDX-License-Identifier: BSD-3-Clause
// Frames: converts between bytes of an Ethernet link and header, option payload, STU and append.
#pragma once

#include <optional>

#include "stp/drop_reason.h"
#include "stp/types.h"
#include "stp/wire/ethernet.h"
#include "stp/wire/header.h"

namespace stp::wire {

// A frame that passed every check of docs/protocol.md section 12. The spans point into the frame.
struct Frame : LinkHeader {
  Header header;
  Bytes option;  // control operations: empty or kOptionSize bytes
  Bytes stu;     // DATA: the user's bytes
  Bytes append;  // DATA: empty or kAppendSize bytes
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

}  // namespace stp::wire
