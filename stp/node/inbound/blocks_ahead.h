// SPDX-License-Identifier: BSD-3-Clause
// The Blocks of a Transfer that completed before an earlier one: a bit per Block number, in a ring
// that starts at the first incomplete Block (section 9).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"

namespace stp {

class BlocksAhead {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // `b_num` is not before `first`, the first incomplete Block.
  [[nodiscard]] bool contains(std::uint32_t b_num, std::uint32_t first) const {
    return b_num - first < size() && (word(b_num) >> b_num % 64 & 1) != 0;
  }
  void insert(std::uint32_t b_num, std::uint32_t first) {
    STP_ASSERT(!contains(b_num, first), "a Block completes once");
    if (b_num - first >= size()) grow(b_num, first);
    STP_ASSERT(b_num - first < size(), "the ring holds the numbers up to the new one");
    word(b_num) |= std::uint64_t{1} << b_num % 64;
    ++count_;
  }
  // Removes the run of complete Blocks that starts at `first` and returns its length.
  std::uint32_t pass(std::uint32_t first) {
    const auto from = first;
    while (count_ > 0) {
      const auto at = first % 64;
      const auto run = static_cast<std::uint32_t>(std::countr_one(word(first) >> at));
      if (run == 0) break;
      word(first) &= ~((run == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << run) - 1) << at);
      STP_ASSERT(run <= count_, "no more Blocks are passed than were complete");
      count_ -= run;
      first += run;
      work::count("Blocks ahead of their turn");
      if (at + run < 64) break;
    }
    return first - from;
  }

 private:
  [[nodiscard]] std::uint32_t size() const {
    return static_cast<std::uint32_t>(64 * words_.size());
  }
  [[nodiscard]] const std::uint64_t& word(std::uint32_t b_num) const {
    return words_[b_num / 64 & (words_.size() - 1)];
  }
  std::uint64_t& word(std::uint32_t b_num) { return words_[b_num / 64 & (words_.size() - 1)]; }

  // Numbers may wrap. The ring is aligned to them and large enough for a window of any alignment,
  // so that each number has its own bit.
  void grow(std::uint32_t b_num, std::uint32_t first) {
    std::vector<std::uint64_t> more(std::bit_ceil((b_num - first) / 64 + 1));
    for (std::size_t w = 0; w < words_.size(); ++w) {
      const auto number = first + static_cast<std::uint32_t>(64 * w);
      // Copies the ring once, starting at the word of `first`. The bits of that word before `first`
      // stand for the numbers after all others.
      const auto bits = word(number);
      const auto before = w == 0 ? (std::uint64_t{1} << first % 64) - 1 : 0;
      more[number / 64 & (more.size() - 1)] |= bits & ~before;
      const auto wrapped = number / 64 + static_cast<std::uint32_t>(words_.size());
      more[wrapped & (more.size() - 1)] |= bits & before;
    }
    work::count("Blocks ahead of their turn", more.size());
    words_ = std::move(more);
  }

  std::vector<std::uint64_t> words_;  // the size is 0 or a power of two
  std::uint32_t count_ = 0;
};

}  // namespace stp
