// SPDX-License-Identifier: BSD-3-Clause
// The last bytes of Blocks, held back until everything before them has arrived.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"
#include "stp/types.h"

namespace stp {

// The last bytes of an STU and their linear address.
struct HeldEnd {
  static constexpr std::size_t kMost = 8;
  std::uint64_t address = 0;
  std::uint32_t size = 0;  // 0: nothing is held
  std::byte bytes[kMost] = {};

  // Keeps the last bytes of `stu`, whose linear address is `stu_address`. Returns how many bytes
  // before them may be written at once.
  std::size_t keep(Bytes stu, std::uint64_t stu_address) {
    size = static_cast<std::uint32_t>(std::min(kMost, stu.size()));
    const auto before = stu.size() - size;
    if (size != 0) std::memcpy(bytes, stu.data() + before, size);
    address = stu_address + before;
    return before;
  }
};

// The held ends of a region's Blocks. They wait for other STUs of their Block, or, in a Silent
// Block, for earlier Blocks. There are never more than the region's window has places.
// protocol: 8.15
class HeldEnds {
 private:
  struct Key {
    std::uint64_t address;
    std::uint32_t b_num;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

 public:
  // The most held ends that one STU may overlap. Examining more would cost too much.
  static constexpr std::size_t kMostMet = 64;
  static constexpr std::size_t kPlaceSize = sizeof(HeldEnd) + sizeof(Key);

  [[nodiscard]] bool empty() const { return order_.empty(); }
  // Call before hold(). `places`: a power of two, at least the number of Blocks that can be under
  // way. False: out of memory.
  [[nodiscard]] bool make_room(std::uint32_t places) {
    if (!places_.empty()) return true;
    work::count("ends of Blocks that are held", places);
    try {
      order_.reserve(places);
      places_.resize(places);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }
  void hold(std::uint32_t b_num, const HeldEnd& end) {
    if (end.size == 0) return;
    STP_ASSERT(!places_.empty(), "there is room before an end is held");
    STP_ASSERT(place(b_num).size == 0, "of a Block one end is held");
    place(b_num) = end;
    const Key key{end.address, b_num};
    order_.insert(std::ranges::lower_bound(order_, key), key);
    STP_ASSERT(order_.size() <= places_.size(), "no more ends are held than there are places");
  }
  // Removes and returns the held end of Block `b_num`; size 0: none was held.
  HeldEnd take(std::uint32_t b_num) {
    if (empty()) return {};
    const auto end = std::exchange(place(b_num), {});
    if (end.size == 0) return end;
    const auto found = std::ranges::lower_bound(order_, Key{end.address, b_num});
    STP_ASSERT(found != order_.end() && found->b_num == b_num, "an end that is held is in order");
    order_.erase(found);
    return end;
  }
  // Whether overwrite() of `size` bytes at `address` would examine at most kMostMet ends.
  [[nodiscard]] bool may_overwrite(std::uint64_t address, std::size_t size) const {
    const auto [first, last] = near(address, size);
    return last - first <= kMostMet;
  }
  // Block `b_num` writes `newer` at `address`: updates the held ends of earlier Blocks so that they
  // do not undo it.
  void overwrite(std::uint32_t b_num, std::uint64_t address, Bytes newer) {
    auto [first, last] = near(address, newer.size());
    work::count("ends of Blocks that are held", last - first);
    const auto from = order_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto to = order_.begin() + static_cast<std::ptrdiff_t>(last);
    const auto covered = std::remove_if(from, to, [&](const Key& key) {
      const bool earlier = static_cast<std::int32_t>(key.b_num - b_num) < 0;
      return earlier && replace(place(key.b_num), address, newer);
    });
    order_.erase(covered, to);
  }

 private:
  HeldEnd& place(std::uint32_t b_num) { return places_[b_num & (places_.size() - 1)]; }
  // The range of order_ that may overlap these bytes.
  [[nodiscard]] std::pair<std::size_t, std::size_t> near(std::uint64_t address,
                                                         std::size_t size) const {
    if (size == 0) return {0, 0};
    constexpr std::uint64_t kBefore = HeldEnd::kMost - 1;
    const auto index_of = [&](std::uint64_t at) {
      return static_cast<std::size_t>(std::ranges::lower_bound(order_, Key{at, 0}) -
                                      order_.begin());
    };
    return {index_of(address - std::min(address, kBefore)), index_of(address + size)};
  }
  // Copies the overlapping bytes of `newer` into `end`. True: they cover all of `end`, which is now
  // empty.
  static bool replace(HeldEnd& end, std::uint64_t address, Bytes newer) {
    const auto first = std::max(address, end.address);
    const auto last = std::min(address + newer.size(), end.address + end.size);
    if (first >= last) return false;
    if (last - first == end.size) {
      end = {};
      return true;
    }
    std::memcpy(end.bytes + (first - end.address), newer.data() + (first - address), last - first);
    return false;
  }
  std::vector<HeldEnd> places_;
  std::vector<Key> order_;  // of the held ends, ascending
};

}  // namespace stp
