// SPDX-License-Identifier: BSD-3-Clause
// An incoming Block: where it may land, which of its STUs have arrived, and its last bytes that
// wait for the others (section 8).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "stp/base/assert.h"
#include "stp/base/linked_list.h"
#include "stp/base/scarce_memory.h"
#include "stp/base/work_meter.h"
#include "stp/counters.h"
#include "stp/types.h"
#include "stp/wire/missing_stus.h"
#include "stp/wire/operations.h"
#include "stp/wire/tiling.h"

namespace stp {

// The STUs of a Block that have been placed. Sized when the Block is granted; never grows.
// protocol: 8.5, 8.8
class StuMap {
 public:
  explicit StuMap(std::uint32_t max_stus = 0)
      : max_(max_stus),
        more_(max_stus > kInline ? std::make_unique<std::uint64_t[]>((max_stus + 63) / 64)
                                 : nullptr) {}

  enum class Check { kNew, kDuplicate, kImpossible };
  // The result of placing STU `number`; `last`: it is the Block's final one.
  [[nodiscard]] Check check(std::uint32_t number, bool last) const {
    if (number >= max_ || number >= total_ || (last && number + 1 < highest_) ||
        (last && total_ != kUnknown && number + 1 != total_))
      return Check::kImpossible;
    return bit(number) ? Check::kDuplicate : Check::kNew;
  }
  // Whether placing STU `number`, for which check() returned kNew, completes the Block.
  [[nodiscard]] bool completes(std::uint32_t number, bool last) const {
    return placed_ + 1 == (last ? number + 1 : total_);
  }
  [[nodiscard]] bool complete() const { return placed_ == total_; }
  void place(std::uint32_t number, bool last) {
    STP_ASSERT(number < max_ && !bit(number), "an STU has a bit in the map, and is placed once");
    words()[number / 64] |= std::uint64_t{1} << number % 64;
    ++placed_;
    newest_ = number;
    if (number + 1 > highest_) highest_ = number + 1;
    if (last) total_ = number + 1;
    STP_ASSERT(placed_ <= highest_ && highest_ <= total_,
               "a Block has no more STUs than its Last says");
  }
  // Clears the map for the next Block that uses this place.
  void reset() {
    for (std::uint32_t w = 0; w * 64 < highest_; ++w) words()[w] = 0;
    work::count("words of a map of STUs", highest_ / 64 + 1);
    placed_ = highest_ = 0;
    total_ = kUnknown;
  }
  // Whether one of [first, end) has not been placed.
  [[nodiscard]] bool misses(std::uint32_t first, std::uint32_t end) const {
    work::count("STUs of a Block", end - std::min(first, end));
    for (auto number = first; number < end; ++number)
      if (!bit(number)) return true;
    return false;
  }
  [[nodiscard]] std::uint32_t capacity() const { return max_; }
  // Heap bytes of a map of `stus` STUs.
  [[nodiscard]] static std::uint64_t footprint(std::uint64_t stus) {
    return stus > kInline ? (stus + 63) / 64 * sizeof(std::uint64_t) : 0;
  }
  [[nodiscard]] std::uint32_t placed() const { return placed_; }
  // The STU placed last. Requires placed() != 0.
  [[nodiscard]] std::uint32_t newest() const { return newest_; }
  // The lowest STU number not placed yet.
  [[nodiscard]] std::uint32_t first_missing() const {
    std::uint32_t word = 0;
    while (word * 64 < max_ && ~words()[word] == 0) ++word;
    work::count("words of a map of STUs", word + 1);
    if (word * 64 >= max_) return max_;
    return std::min(max_, word * 64 + static_cast<std::uint32_t>(std::countr_one(words()[word])));
  }
  // Whether an STU after `number` has been placed.
  [[nodiscard]] bool placed_after(std::uint32_t number) const { return highest_ > number + 1; }
  // Those from `first` on that have not been placed yet, as many as can be told at once. `asked`:
  // none from that number on has been asked for.
  [[nodiscard]] wire::MissingStus missing_from(std::uint32_t first,
                                               std::uint32_t asked = kUnknown) const {
    wire::MissingStus missing;
    const auto end = std::min({max_, total_, asked, first + wire::MissingStus::kMost});
    for (auto number = first; number < end; ++number)
      if (!bit(number)) missing.add(number - first);
    work::count("STUs of a Block", end - std::min(first, end));
    return missing;
  }

 private:
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
  static constexpr std::uint32_t kInline = 128;
  [[nodiscard]] const std::uint64_t* words() const { return more_ ? more_.get() : few_.data(); }
  [[nodiscard]] std::uint64_t* words() { return more_ ? more_.get() : few_.data(); }
  [[nodiscard]] bool bit(std::uint32_t number) const {
    return (words()[number / 64] >> number % 64 & 1) != 0;
  }

  std::uint32_t max_;
  std::uint32_t placed_ = 0, newest_ = 0;
  std::uint32_t highest_ = 0;       // one past the highest STU placed
  std::uint32_t total_ = kUnknown;  // STUs of the Block, once the Last was placed
  std::array<std::uint64_t, kInline / 64> few_{};
  std::unique_ptr<std::uint64_t[]> more_;
};

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

// The last bytes of Blocks, held back until everything before them has arrived.
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
    const auto make = [&] {
      order_.reserve(places);
      places_.resize(places);
      return true;
    };
    return within_memory(make, [] { return false; });
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
  std::vector<Key> order_;  // of the held ends, ascending
  std::vector<HeldEnd> places_;
};

struct InboundTransfer;

// What one CTS has asked for: a Block, or a part of one. Recovery judges by it what arrives.
struct Grant {
  std::uint64_t serial = 0;    // order of grants; a repeat counts as a new one
  Time left = 0;               // when the CTS left; 0: not known
  std::uint32_t sync = 0;      // of the last STU placed: identifies the sending
  std::uint16_t first = 0;     // the STU that it begins with
  bool begun : 1 = false;      // some of it has arrived
  bool repeated : 1 = false;   // its CTS has been repeated since then
  bool asked_for : 1 = false;  // the STUs arriving now answer a repeated CTS
  // It may have been sent before its CTS was repeated: then it has passed no other.
  bool unsure : 1 = false;

  // Its CTS has never been repeated: after a repeat one of these stays true.
  [[nodiscard]] bool asked_once() const { return !repeated && !asked_for && !unsure; }
};

// The parts of a Block, in the order of their grants. protocol: 13.19
class GrantedParts {
 public:
  // As many as a window of 16,384 STUs has. If a Block has more, its oldest are one.
  static constexpr std::size_t kMost = 64;

  // Another part has been granted.
  void add(const Grant& part) {
    STP_ASSERT(count_ == 0 ? part.first == 0 : part.first > newest().first,
               "the parts of a Block follow each other");
    if (count_ == parts_.size()) {
      parts_[0].left = 0;
      std::shift_left(parts_.begin() + 1, parts_.end(), 1);
      --count_;
    }
    parts_[count_++] = part;
  }
  // The part with STU `number`.
  [[nodiscard]] Grant& of(std::uint32_t number) {
    const auto after = std::ranges::upper_bound(all(), number, {}, &Grant::first);
    return *std::prev(after);
  }
  [[nodiscard]] Grant& newest() { return parts_[count_ - 1]; }
  [[nodiscard]] const Grant& newest() const { return parts_[count_ - 1]; }
  [[nodiscard]] std::span<Grant> all() { return {parts_.data(), count_}; }
  // What is missing before STU `until` is lost. Returns how far that was known.
  std::uint32_t lost_before(std::uint32_t until) {
    return std::exchange(lost_before_, std::max(lost_before_, until));
  }
  [[nodiscard]] std::uint32_t lost_before() const { return lost_before_; }
  // The path knows of what is lost, and it has not been asked for yet.
  bool told_path = false;

 private:
  std::array<Grant, kMost> parts_{};
  std::uint32_t count_ = 0;
  std::uint32_t lost_before_ = 0;  // what is missing before this STU is lost
};

// The tiling of this side's memory: log2 of the buffer size and of the size of incoming STUs.
struct Tiles {
  unsigned bufsize = 14, stu_log2 = 10;

  [[nodiscard]] std::uint64_t linear(std::uint32_t bufx, std::uint32_t offset) const {
    return Address{bufx, offset}.linear(bufsize);
  }
};

// An incoming Block: where it may land, and which of its STUs have arrived (section 8).
struct InboundBlock {
  InboundTransfer* transfer = nullptr;  // nullptr: an answer to a Get or FetchOp
  std::uint32_t b_num = 0;
  // Linear destination addresses. A scheduled Block begins where its CTS says. A Put Block begins
  // where its STU 0 lands; any of its STUs tells the tile of STU 0.
  std::uint64_t start = 0, end = 0;  // may write to [start, end)
  std::uint64_t whole_end = 0;       // the Block ends here, though only a part may be granted yet
  std::uint64_t first_tile = 0;      // tile of STU 0
  bool tile_known = false;
  std::uint64_t first_address = 0;  // address of STU 0, once known
  StuMap stus{};
  std::uint64_t received = 0;  // bytes placed
  std::uint32_t r_id = 0;
  bool exact = false;     // must end at `whole_end`
  bool anywhere = false;  // may begin anywhere in [start, end)
  bool value = false;     // a FetchOp's old value: big-endian on the wire
  // Recovery: the CTS to repeat, and the time of the last progress.
  wire::ClearToSend cts;
  Time progress = 0;
  unsigned repeats = 0;    // repeats of the CTS since then
  bool overtaken = false;  // later Blocks had overtaken it when the CTS was repeated
  Grant whole;             // if it was granted at once
  // The header to deliver on completion; set by the Last STU.
  wire::Header last;
  std::uint8_t append[wire::kAppendSize] = {};
  bool has_append = false;
  HeldEnd held;  // end of the Last STU while others are missing; regions use HeldEnds
  std::unique_ptr<GrantedParts> parts;  // nullptr: it was granted at once

  // Checks that an STU of `length` bytes fits the tiling of this Block. kNone: it may be placed.
  [[nodiscard]] DropReason check_stu(const wire::DataView& data, std::size_t length,
                                     const Tiles& tiles) const;
  // The first byte that has not arrived, relative to the start: F_Offset of a repeated CTS.
  [[nodiscard]] std::uint32_t first_missing(const Tiles& tiles) const;
  // Some of it has not been granted yet.
  [[nodiscard]] bool is_part() const { return end < whole_end; }
  // What the CTS granted that asked for STU `number`, and what the newest one did.
  [[nodiscard]] Grant& grant_of(std::uint32_t number) {
    return parts == nullptr ? whole : parts->of(number);
  }
  [[nodiscard]] const Grant& newest_grant() const {
    return parts == nullptr ? whole : parts->newest();
  }
  [[nodiscard]] std::span<Grant> grants() {
    return parts == nullptr ? std::span(&whole, 1) : parts->all();
  }
  // The STUs that have been granted.
  [[nodiscard]] std::uint32_t granted_stus(const Tiles& tiles) const {
    return static_cast<std::uint32_t>(stu_count(start, end - start, tiles.stu_log2));
  }
  // The end of what is granted when it is `more` STUs longer, or fewer if the Block ends.
  [[nodiscard]] std::uint64_t end_of_part(std::uint32_t more, const Tiles& tiles) const {
    const auto tile = (end >> tiles.stu_log2) + more;
    return std::min(tile << tiles.stu_log2, whole_end);
  }
};

struct InOrderOfGrant;
// A Block granted by a CTS. Its connection lists them by serial number.
struct GrantedBlock : InboundBlock, ListHook<InOrderOfGrant> {};

}  // namespace stp
