// SPDX-License-Identifier: BSD-3-Clause
// What it takes to keep track of what is on its way: STUs, of which a connection has a bound, and
// bytes, which its owner's budget pays for.
// protocol: 7.14, 7.19
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "stp/node/inbound/inbound_transfer.h"

namespace stp::window_memory {

// A place for a Block of a region counts as a map of so many STUs at least: about what it takes
// itself, so that many small windows are no way to more memory than a few large ones.
// protocol: 7.14
inline constexpr std::uint64_t kLeastTracked = 1'024;
// What the tables and the allocator add to each of them.
inline constexpr std::uint64_t kTableEntry = 64;

// Places for the Blocks of a region with this window.
inline std::uint32_t places_for(std::uint32_t b_win) {
  return std::bit_ceil(b_win);
}
// STUs that places of `stus` each count as.
inline std::uint64_t tracked(std::uint64_t stus, std::uint32_t places) {
  return std::max(stus, kLeastTracked) * places;
}
// STUs that `transfer` counts as.
inline std::uint64_t tracked_by(const InboundTransfer& transfer) {
  return transfer.region ? tracked(transfer.most_stus, places_for(transfer.b_win))
                         : transfer.tracked;
}

// Bytes of a Transfer of which so many Blocks may be under way: with the numbers of those that are
// complete ahead of their turn.
inline std::uint64_t of_transfer(std::uint64_t blocks) {
  return sizeof(InboundTransfer) + 2 * kTableEntry + std::bit_ceil((blocks + 63) / 64) * 8;
}
// Bytes of a granted Block.
inline std::uint64_t of_block(std::uint64_t stus) {
  return sizeof(GrantedBlock) + kTableEntry + StuMap::footprint(stus);
}
// Bytes of all places of a region.
inline std::uint64_t of_window(std::uint64_t stus, std::uint32_t places) {
  return places *
         (sizeof(InboundBlock) + HeldEnds::kPlaceSize + kTableEntry + StuMap::footprint(stus));
}

}  // namespace stp::window_memory
