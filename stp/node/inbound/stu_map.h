// SPDX-License-Identifier: BSD-3-Clause
// The STUs of a Block that have been placed. Sized when the Block is granted; never grows.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"

namespace stp {

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
  [[nodiscard]] std::uint32_t capacity() const { return max_; }
  // Heap bytes of a map of `stus` STUs.
  [[nodiscard]] static std::uint64_t footprint(std::uint64_t stus) {
    return stus > kInline ? (stus + 63) / 64 * sizeof(std::uint64_t) : 0;
  }
  [[nodiscard]] std::uint32_t placed() const { return placed_; }
  // The lowest STU number not placed yet.
  [[nodiscard]] std::uint32_t first_missing() const {
    std::uint32_t word = 0;
    while (word * 64 < max_ && ~words()[word] == 0) ++word;
    work::count("words of a map of STUs", word + 1);
    if (word * 64 >= max_) return max_;
    return std::min(max_, word * 64 + static_cast<std::uint32_t>(std::countr_one(words()[word])));
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
  std::uint32_t placed_ = 0;
  std::uint32_t highest_ = 0;       // one past the highest STU placed
  std::uint32_t total_ = kUnknown;  // STUs of the Block, once the Last was placed
  std::array<std::uint64_t, kInline / 64> few_{};
  std::unique_ptr<std::uint64_t[]> more_;
};

}  // namespace stp
