// SPDX-License-Identifier: BSD-3-Clause
// Mx: 16-bit names of sub-ranges of bound receive Bufx entries, and what each permits (section 7).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "stp/memory/bufx_range.h"

namespace stp {

// protocol: 7.3
struct MxEntry {
  const BufxRange* range = nullptr;  // nullptr: not live
  std::uint32_t first = 0, count = 0;
  std::uint64_t endpoint = 0;  // the endpoint whose memory it is
  std::uint64_t vc = 0;        // the one connection it is for; 0: all of the endpoint's
  RegionId region = 0;
  std::uint8_t permissions = 0;

  [[nodiscard]] bool contains(std::uint32_t bufx) const { return bufx - first < count; }
};

class MxTable {
 public:
  // The new Mx, or -ENOSPC. Mx 0 is never given out: a header of zeros names nothing.
  int allocate(const MxEntry& entry);
  void free(std::uint16_t mx);
  // nullptr: not live.
  [[nodiscard]] const MxEntry* find(std::uint16_t mx) const {
    return mx < entries_.size() && entries_[mx].range != nullptr ? &entries_[mx] : nullptr;
  }
  template <typename Matches>
  void free_if(Matches&& matches) {
    for (std::size_t mx = 0; mx < entries_.size(); ++mx)
      if (entries_[mx].range != nullptr && matches(entries_[mx]))
        free(static_cast<std::uint16_t>(mx));
  }

 private:
  static constexpr std::size_t kResting = 1024;
  std::vector<MxEntry> entries_{1};
  std::deque<std::uint16_t> free_;
};

}  // namespace stp
