// SPDX-License-Identifier: BSD-3-Clause
// How much a connection loses, and the Block size that fits: a lost STU costs the rest of its
// Block, so half a Block for each loss (docs/protocol.md, section 10).
#pragma once

#include <cstdint>

namespace stp {

// protocol: 10.10
class LossEstimate {
 public:
  // `stus` more have arrived; `repeats` CTS have been sent again since the beginning.
  void observe(std::uint64_t stus, std::uint32_t repeats) {
    stus_ += stus;
    if (repeats == last_repeats_ && stus_ < kSample) return;
    auto const lost = static_cast<double>(repeats - last_repeats_);
    auto const seen = static_cast<double>(stus_) + lost;
    if (seen == 0) return;
    // A small sample says little: it moves the estimate in proportion.
    auto const weight = seen < kSample ? seen / (4.0 * kSample) : 0.25;
    rate_ += weight * (lost / seen - rate_);
    stus_ = 0;
    last_repeats_ = repeats;
  }
  [[nodiscard]] double rate() const { return rate_; }

  // log2 of the STUs a Block may have so that repeats cost at most kBudget of the bytes.
  [[nodiscard]] unsigned max_block_stus_log2() const {
    unsigned log2 = kLargest;
    while (log2 > 0 && rate_ * static_cast<double>(1U << log2) / 2 > kBudget) --log2;
    return log2;
  }

 private:
  static constexpr std::uint64_t kSample = 256;
  static constexpr double kBudget = 0.03;
  static constexpr unsigned kLargest = 15;
  std::uint64_t stus_ = 0;
  std::uint32_t last_repeats_ = 0;
  double rate_ = 0;
};

}  // namespace stp
