// SPDX-License-Identifier: BSD-3-Clause
// The cost of tracking data on its way: STUs, limited per connection, and bytes, which the owner's
// budget pays for.
// protocol: 7.14, 7.19
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "stp/node/inbound/inbound_transfer.h"

namespace stp::window_memory {

// A region's place for a Block counts as a map of at least this many STUs, about what the place
// itself takes. So many small windows do not get more memory than a few large ones.
// protocol: 7.14
inline constexpr std::uint64_t kLeastTracked = 1'024;
// Overhead of tables and allocator per entry.
inline constexpr std::uint64_t kTableEntry = 64;

// The number of places of a region with this window.
inline std::uint32_t places_for(std::uint32_t b_win) {
  return std::bit_ceil(b_win);
}
// The STUs that `places` places of `stus` STUs each count as.
inline std::uint64_t tracked(std::uint64_t stus, std::uint32_t places) {
  return std::max(stus, kLeastTracked) * places;
}
// The STUs that `transfer` counts as.
inline std::uint64_t tracked_by(const InboundTransfer& transfer) {
  return transfer.region ? tracked(transfer.most_stus, places_for(transfer.b_win))
                         : transfer.tracked;
}

// Bytes of a Transfer with up to `blocks` Blocks under way, including the bits of Blocks complete
// before their turn.
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
