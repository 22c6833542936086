// SPDX-License-Identifier: BSD-3-Clause
// Segment lists of DAT as those of the core.
#pragma once

#include <array>

#include "libst/udapl/front/front.h"

namespace stp::udapl::front {

class Segments {
 public:
  Segments(const DAT_LMR_TRIPLET* given, DAT_COUNT count)
      : valid_(count >= 0 && count <= kMaxIov && (count == 0 || given != nullptr)) {
    if (!valid_) return;
    count_ = static_cast<std::size_t>(count);
    for (std::size_t i = 0; i < count_; ++i)
      segments_[i] = {given[i].virtual_address, given[i].segment_length, given[i].lmr_context};
  }
  [[nodiscard]] bool valid() const { return valid_; }
  [[nodiscard]] std::span<const LmrTriplet> get() const { return {segments_.data(), count_}; }

 private:
  bool valid_;
  std::size_t count_ = 0;
  std::array<LmrTriplet, kMaxIov> segments_;
};

}  // namespace stp::udapl::front
