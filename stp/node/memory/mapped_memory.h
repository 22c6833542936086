// SPDX-License-Identifier: BSD-3-Clause
// The memory that users have mapped on their endpoints, and the Mx that let peers name parts of it.
// Nobody reaches memory after unmap(); its user is told (kRegionGone) when no frame reads it any
// more (docs/protocol.md, section 7).
#pragma once

#include <span>

#include "stp/base/id_table.h"
#include "stp/node/common.h"
#include "stp/node/connection/port_table.h"
#include "stp/node/memory/bufx_range.h"

namespace stp {

class MappedMemory {
 public:
  // Both must outlive this.
  MappedMemory(Common& common, const PortTable& vcs)
      : common_(common), vcs_(vcs), regions_(common.config.max_regions) {}

  // As Node::map() and so on.
  int map(Endpoint& endpoint, Direction direction, std::uint32_t base,
          std::span<const MutableBytes> pieces, RegionId& out);
  int unmap(RegionId id);
  int alloc_mx(RegionId region, VcId vc, std::uint8_t permissions, std::uint16_t& out);
  int free_mx(EndpointId endpoint, std::uint16_t mx);
  static BufxRange& range_of(Endpoint& endpoint, Direction direction) {
    return direction == Direction::kReceive ? endpoint.receive : endpoint.transmit;
  }

  // The memory where the peer of `vc` may access `length` bytes with one of the permissions
  // `permission`, as a header names it; or the reason why it may not.
  // protocol: 7.6
  [[nodiscard]] DropReason check(const Vc& vc, const wire::Header& header, std::size_t length,
                                 std::uint8_t permission, std::byte*& memory) const;
  // The sub-range that a checked `mx` names.
  [[nodiscard]] const MxEntry& named(std::uint16_t mx) const { return *mxs_.find(mx); }

  // As Node::is_read().
  [[nodiscard]] bool is_read(RegionId id) const {
    const auto* const region = regions_.find(id);
    return region != nullptr && region->attached != 0;
  }
  // A frame reads memory of this mapped region, until it has left.
  void attach(RegionId id);
  // False: no such frame is known; it was given back twice.
  bool detach(RegionId id);

  // The connection has ended. From now on these Mx permit nothing.
  void abandon(VcMxs& mxs) {
    mxs_.abandon(mxs);
    mxs_.tidy(kTidiedAtOnce);
  }
  // Frees up to `most` names of what has ended. Returns how many.
  std::size_t tidy(std::size_t most) { return mxs_.tidy(most); }
  [[nodiscard]] bool untidy() const { return mxs_.untidy(); }

 private:
  static constexpr std::size_t kTidiedAtOnce = 64;

  [[nodiscard]] bool is_live(const MxEntry& mx) const;
  void end(Region& region);

  Common& common_;
  const PortTable& vcs_;
  IdTable<Region> regions_;
  MxTable mxs_;
};

// In this header because it is part of the way of each STU.
inline DropReason MappedMemory::check(const Vc& vc, const wire::Header& h, std::size_t length,
                                      std::uint8_t permission, std::byte*& memory) const {
  const auto* const mx = mxs_.find(h.mx);
  if (mx == nullptr) return DropReason::kBadMx;
  if (mx->endpoint != vc.endpoint->id || (mx->vc != kNoneId && mx->vc != vc.id))
    return is_live(*mx) ? DropReason::kMxNotOwned : DropReason::kBadMx;
  if (!mx->contains(h.bufx)) return is_live(*mx) ? DropReason::kBadBufx : DropReason::kBadMx;
  const auto& range = vc.endpoint->receive;
  const auto entry = range.find(h.bufx);
  // An unmapped region has nothing bound, and no other region has its id.
  if (entry.region != mx->region) return is_live(*mx) ? DropReason::kBadBufx : DropReason::kBadMx;
  const auto size = std::uint64_t{1} << range.bufsize();
  if (h.offset >= size) return DropReason::kBadOffset;
  if (h.offset + length > size) return DropReason::kStuCrossesBuffer;
  if ((mx->permissions & permission) == 0) return DropReason::kNoPermission;
  memory = entry.memory + h.offset;
  return DropReason::kNone;
}

}  // namespace stp
