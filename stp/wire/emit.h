// SPDX-License-Identifier: BSD-3-Clause
// Builds the head of a frame; inline, for callers that do so once per frame. Equals emit_head() of
// frame.h and part of its caller.
#pragma once

#include "stp/wire/ethernet.h"
#include "stp/wire/header.h"

namespace stp::wire {

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

}  // namespace stp::wire
