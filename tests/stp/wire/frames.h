// SPDX-License-Identifier: BSD-3-Clause
// Shared by the tests of stp/wire: bytes from hexadecimal digits, and frames with a chosen fault.
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

// Byte i is 7i + 1. Neighbouring bytes differ, so that a swap is detected.
Buffer pattern(std::size_t length);

// A header that passes every check, for this operation with these flags.
Header good_header(Op op, std::uint16_t flags = 0);

// A frame from A to B with this encapsulation and without padding.
Buffer ethernet2(const Header& header, Bytes body = {});
Buffer snap(const Header& header, Bytes body = {});
Buffer tagged(Buffer untagged, std::uint16_t tag);

// Returns only the verdict of parsing the frame.
DropReason verdict(Bytes frame);

}  // namespace stp::wire
