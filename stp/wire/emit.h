// SPDX-License-Identifier: BSD-3-Clause
// Putting the head of a frame together, for whoever does it once per frame: as emit_head() of
// frame.h, and part of its caller.
#pragma once

#include "stp/wire/ethernet.h"
#include "stp/wire/header.h"

namespace stp::wire {

// In an Ethernet II frame a shorter STU (with append) would be lost in the padding.
// protocol: 2.4, 2.5
inline bool goes_as_snap(const Header& header, std::size_t stu_length) {
  return stu_length < kMinPayload - kHeaderSize && header.op() == Op::kData;
}

// Without an Envelope, of which nothing is copied then, and with a Cksum of 0. `length`: of all
// that will follow. Returns where the Schedule Header stands.
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
// Then fills the Cksum in.
void fill_checksum(std::byte* at_header, std::span<const Bytes> payload);

}  // namespace stp::wire
