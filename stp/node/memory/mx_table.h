// SPDX-License-Identifier: BSD-3-Clause
// Mx: 16-bit names of sub-ranges of bound receive Bufx entries, and what each permits (section 7).
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
  std::uint64_t vc = 0;        // the one connection it is for; 0: all of the endpoint's
  std::uint8_t permissions = 0;

  [[nodiscard]] bool contains(std::uint32_t bufx) const { return bufx - first < count; }
};

// Which Mx are on one region, and which are for one connection: what ends takes its own along.
struct MxOfRegion;
struct MxOfVc;
struct MxPlace : Link<MxOfRegion>, Link<MxOfVc> {
  std::uint16_t mx = 0;
};
using RegionMxs = LinkedList<MxPlace, MxOfRegion>;
using VcMxs = LinkedList<MxPlace, MxOfVc>;

class MxTable {
 public:
  // Names that there are: none is 0.
  static constexpr std::size_t kMost = 0xffff;

  // The new Mx, or -ENOSPC. Mx 0 is never given out: a header of zeros names nothing. `of_vc`:
  // nullptr where it is for no particular connection.
  int allocate(const MxEntry& entry, RegionMxs& of_region, VcMxs* of_vc);
  void free(std::uint16_t mx);
  // The region or the connection has ended: its id will never come again, so that these permit
  // nothing any more. Their names are free once tidy() has come to them.
  void abandon(RegionMxs& mxs) { of_ended_regions_.append(mxs); }
  void abandon(VcMxs& mxs) { of_ended_vcs_.append(mxs); }
  // Frees up to `most` names of what was abandoned. How many it has freed.
  std::size_t tidy(std::size_t most);
  [[nodiscard]] bool untidy() const { return !of_ended_regions_.empty() || !of_ended_vcs_.empty(); }
  // nullptr: not live. What has been abandoned may still be found: its region's id, or its
  // connection's, is nobody's.
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
