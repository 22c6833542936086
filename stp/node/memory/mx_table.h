// SPDX-License-Identifier: BSD-3-Clause
// Mx: 16-bit names of sub-ranges of bound receive Bufx entries, with the operations each permits
// (section 7).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "stp/base/linked_list.h"
#include "stp/node/memory/bufx_range.h"

namespace stp {

// protocol: 7.3
struct MxEntry {
  RegionId region = 0;  // 0: not live
  std::uint32_t first = 0, count = 0;
  std::uint64_t endpoint = 0;  // the endpoint whose memory it is
  std::uint64_t vc = 0;        // its only connection; 0: all of the endpoint's
  std::uint8_t permissions = 0;

  [[nodiscard]] bool contains(std::uint32_t bufx) const { return bufx - first < count; }
};

// The Mx of one region and of one connection: they end with it.
struct MxOfRegion;
struct MxOfVc;
struct MxPlace : Link<MxOfRegion>, Link<MxOfVc> {
  std::uint16_t mx = 0;
};
using RegionMxs = LinkedList<MxPlace, MxOfRegion>;
using VcMxs = LinkedList<MxPlace, MxOfVc>;

class MxTable {
 public:
  // The number of names; 0 is not one.
  static constexpr std::size_t kMost = 0xffff;

  // Returns the new Mx or -ENOSPC. Never returns 0, so a header of zeros names nothing. `of_vc`:
  // nullptr if it is for no particular connection.
  int allocate(const MxEntry& entry, RegionMxs& of_region, VcMxs* of_vc);
  void free(std::uint16_t mx);
  // The region or connection has ended. Its id never returns, so these Mx permit nothing any more.
  // tidy() frees their names.
  void abandon(RegionMxs& mxs) { of_ended_regions_.append(mxs); }
  void abandon(VcMxs& mxs) { of_ended_vcs_.append(mxs); }
  // Frees up to `most` abandoned names. Returns how many.
  std::size_t tidy(std::size_t most);
  [[nodiscard]] bool untidy() const { return !of_ended_regions_.empty() || !of_ended_vcs_.empty(); }
  // nullptr: not live. May return an abandoned Mx; the ids of its region and connection name
  // nothing.
  [[nodiscard]] const MxEntry* find(std::uint16_t mx) const {
    return mx < entries_.size() && entries_[mx].region != 0 ? &entries_[mx] : nullptr;
  }

 private:
  static constexpr std::size_t kResting = 1024;
  std::vector<MxEntry> entries_{1};
  std::deque<MxPlace> places_{1};  // of the entry with the same index
  std::deque<std::uint16_t> free_;
  RegionMxs of_ended_regions_;
  VcMxs of_ended_vcs_;
};

}  // namespace stp
