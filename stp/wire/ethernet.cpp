// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/ethernet.h"

#include <cstring>

#include "stp/wire/big_endian.h"

namespace stp::wire {
namespace {

// `rest`: the bytes after the length field; shortened here to the payload.
// protocol: 2.6, 2.11
DropReason unwrap_snap(std::size_t length, Bytes& rest) {
  if (length < kSnapSize) return DropReason::kNotStp;
  if (rest.size() < kSnapSize) return DropReason::kTruncated;
  if (std::memcmp(rest.data(), kSnap.data(), kSnapSize) != 0) return DropReason::kNotStp;
  if (rest.size() < length) return DropReason::kTruncated;
  rest = rest.first(length).subspan(kSnapSize);
  return DropReason::kNone;
}

}  // namespace

DropReason unwrap_more(std::uint16_t type, LinkHeader& link, Bytes& payload) {
  if (type == kVlanEtherType) {
    if (payload.size() < kVlanSize) return DropReason::kTruncated;
    link.vlan = load16(payload.data());
    type = load16(payload.data() + 2);
    payload = payload.subspan(kVlanSize);
  }
  link.snap = type <= kMax8023Length;
  if (link.snap) return unwrap_snap(type, payload);
  return type == kEtherType ? DropReason::kNone : DropReason::kNotStp;
}

}  // namespace stp::wire
