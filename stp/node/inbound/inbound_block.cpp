// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound_block.h"

namespace stp {

// protocol: 8.6
DropReason InboundBlock::check_stu(const wire::DataView& data, std::size_t length,
                                   const Tiles& tiles) const {
  const auto at = tiles.linear(data.r_bufx(), data.r_offset());
  if (at < start || at + length > end) return DropReason::kOutsideGrant;
  const auto tile = at >> tiles.stu_log2;
  const auto size = std::uint64_t{1} << tiles.stu_log2;
  const auto in_tile = at & (size - 1);
  const bool is_last = data.has(wire::flag::kLast);
  // Every STU but the first begins its tile, every one but the last fills it to the end.
  if (tile < data.stu_num() || (data.stu_num() > 0 && in_tile != 0) || in_tile + length > size ||
      (!is_last && in_tile + length != size) || (data.stu_num() > 0 && length == 0))
    return DropReason::kBadStuNum;
  if (tile_known && tile - data.stu_num() != first_tile) return DropReason::kBadStuNum;
  if (!anywhere && data.stu_num() == 0 && at != first_address) return DropReason::kBadStuNum;
  switch (stus.check(data.stu_num(), is_last)) {
    case StuMap::Check::kImpossible:
      return DropReason::kBadStuNum;
    case StuMap::Check::kDuplicate:
      return DropReason::kDuplicateStu;
    case StuMap::Check::kNew:
      break;
  }
  // A scheduled Block of known length ends with its Transfer, not before.
  if (exact && is_last != (at + length == whole_end)) return DropReason::kBadStuNum;
  return DropReason::kNone;
}

// protocol: 9.5
std::uint32_t InboundBlock::first_missing(const Tiles& tiles) const {
  const auto number = stus.first_missing();
  if (number == 0) return 0;
  return static_cast<std::uint32_t>(((first_tile + number) << tiles.stu_log2) - start);
}

}  // namespace stp
