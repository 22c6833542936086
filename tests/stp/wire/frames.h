// SPDX-License-Identifier: BSD-3-Clause
// What the tests of stp/wire share: bytes from hex, and frames with a chosen fault.
#pragma once

#include <string_view>
#include <vector>

#include "stp/wire/frame.h"

namespace stp::wire {

using Buffer = std::vector<std::byte>;

inline constexpr MacAddr kMacA = {{2, 0, 0, 0, 0, 1}};
inline constexpr MacAddr kMacB = {{2, 0, 0, 0, 0, 2}};
inline constexpr Envelope kAToB = {.dst = kMacB, .src = kMacA, .vlan = {}, .checksum = false};
inline constexpr unsigned kMaxStu = 13;

// Hexadecimal digits; blanks are skipped.
Buffer bytes(std::string_view hex);

// Bytes i -> 7i + 1: no two neighbours alike, so that no swap goes unseen.
Buffer pattern(std::size_t length);

// A header that passes every check: RTS of A, or what `flags` makes of another op.
Header good_header(Op op, std::uint16_t flags = 0);

// The encapsulation of A to B, without padding: what follows is up to the test.
Buffer ethernet2(const Header& header, Bytes body = {});
Buffer snap(const Header& header, Bytes body = {});
Buffer tagged(Buffer untagged, std::uint16_t tag);

// Drops everything but the verdict.
DropReason verdict(Bytes frame);

}  // namespace stp::wire
