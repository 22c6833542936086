// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/memory/mx_table.h"

#include <cerrno>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"

namespace stp {

// protocol: 7.4
int MxTable::allocate(const MxEntry& entry, RegionMxs& of_region, VcMxs* of_vc) {
  STP_ASSERT(entry.region != 0, "an Mx is of a region");
  STP_ASSERT(entries_.size() == places_.size(), "each Mx has its place in the lists");
  const bool full = entries_.size() > kMost;
  if (full && free_.empty() && tidy(1) == 0) return -ENOSPC;
  std::uint16_t mx;
  // A freed name rests for a while, so that a late frame does not find it in new hands.
  if (full || free_.size() > kResting) {
    STP_ASSERT(!free_.empty() && entries_[free_.front()].region == 0,
               "a name that is free is live no more");
    mx = free_.front();
    free_.pop_front();
    entries_[mx] = entry;
  } else {
    mx = static_cast<std::uint16_t>(entries_.size());
    entries_.push_back(entry);
    places_.emplace_back().mx = mx;
  }
  STP_ASSERT(mx != 0, "Mx 0 is never given out");
  of_region.push_back(places_[mx]);
  if (of_vc != nullptr) of_vc->push_back(places_[mx]);
  return mx;
}

void MxTable::free(std::uint16_t mx) {
  STP_ASSERT(find(mx) != nullptr, "an Mx that is freed is live");
  entries_[mx] = {};
  auto& place = places_[mx];
  static_cast<Link<MxOfRegion>&>(place).unlink();
  static_cast<Link<MxOfVc>&>(place).unlink();
  free_.push_back(mx);
}

std::size_t MxTable::tidy(std::size_t most) {
  std::size_t freed = 0;
  for (; freed < most && !of_ended_regions_.empty(); ++freed) free(of_ended_regions_.front().mx);
  for (; freed < most && !of_ended_vcs_.empty(); ++freed) free(of_ended_vcs_.front().mx);
  work::count("Mx of what has ended", freed);
  return freed;
}

}  // namespace stp
