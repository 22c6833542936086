// SPDX-License-Identifier: BSD-3-Clause
// The last bytes of Blocks that must not be seen yet: something before them has not come.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "stp/base/work_meter.h"
#include "stp/types.h"

namespace stp {

struct HeldEnd {
  static constexpr std::size_t kMost = 8;
  std::uint32_t bufx = 0, offset = 0;
  std::uint32_t size = 0;  // 0: nothing is held
  std::byte bytes[kMost] = {};

  // Keeps the last bytes of `stu`, which belongs at (bufx, offset). How many go there at once.
  std::size_t keep(Bytes stu, std::uint32_t stu_bufx, std::uint32_t stu_offset) {
    size = static_cast<std::uint32_t>(std::min(kMost, stu.size()));
    auto const before = stu.size() - size;
    if (size != 0) std::memcpy(bytes, stu.data() + before, size);
    bufx = stu_bufx;
    offset = stu_offset + static_cast<std::uint32_t>(before);
    return before;
  }
};

// Those of complete Blocks of a region, of which earlier ones are missing: no more than its window.
// protocol: 8.15
class HeldEnds {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // To be called before hold(). `places`: a power of two, as many as there can be Blocks under way.
  // False: the system has no memory for them.
  [[nodiscard]] bool make_room(std::uint32_t places) {
    if (!places_.empty()) return true;
    work::count("ends of Blocks that are held", places);
    try {
      places_.resize(places);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }
  void hold(std::uint32_t b_num, const HeldEnd& end) {
    if (end.size == 0) return;
    place(b_num) = end;
    ++count_;
  }
  // What is held of Block `b_num`, where anything is held. Size 0: nothing of this one.
  [[nodiscard]] const HeldEnd& of(std::uint32_t b_num) const {
    return places_[b_num & (places_.size() - 1)];
  }
  // What is held of Block `b_num`: nothing is any more.
  HeldEnd take(std::uint32_t b_num) {
    auto const end = std::exchange(place(b_num), {});
    if (end.size != 0) --count_;
    return end;
  }

 private:
  HeldEnd& place(std::uint32_t b_num) { return places_[b_num & (places_.size() - 1)]; }
  std::vector<HeldEnd> places_;
  std::uint32_t count_ = 0;
};

}  // namespace stp
