// SPDX-License-Identifier: BSD-3-Clause
// Estimates the loss of a connection and the Block size that fits it: a lost STU costs the rest of
// its Block, on average half a Block (docs/protocol.md, section 10).
#pragma once

#include <algorithm>
#include <cstdint>

#include "stp/base/assert.h"

namespace stp {

// protocol: 10.10
class LossEstimate {
 public:
  // `stus` more STUs have arrived. `repeats`: CTS repeated since the beginning.
  void observe(std::uint64_t stus, std::uint32_t repeats) {
    stus_ += stus;
    if (repeats == last_repeats_ && stus_ < kSample) return;
    const auto lost = static_cast<double>(repeats - last_repeats_);
    const auto seen = static_cast<double>(stus_) + lost;
    if (seen == 0) return;
    // A mean at first, then a moving mean; a small sample changes it in proportion.
    STP_ASSERT(lost >= 0 && lost <= seen, "no more is lost than was sent");
    total_ += seen;
    const auto weight = std::max(std::min(seen / kSample, 1.0) / 4, seen / total_);
    rate_ += weight * (lost / seen - rate_);
    stus_ = 0;
    last_repeats_ = repeats;
  }
  [[nodiscard]] double rate() const { return rate_; }

  // log2 of the most STUs per Block for which repeats cost at most kBudget of the bytes. Small
  // while nothing is known, because all Blocks of a Transfer are as long as its first.
  [[nodiscard]] unsigned max_block_stus_log2(unsigned stu_log2) const {
    if (total_ == 0)
      return std::max(kUnknownStus, kUnknownBytes - std::min(stu_log2, kUnknownBytes));
    unsigned log2 = kLargest;
    while (log2 > 0 && rate_ * static_cast<double>(1U << log2) / 2 > kBudget) --log2;
    return log2;
  }

 private:
  static constexpr std::uint64_t kSample = 256;
  static constexpr double kBudget = 0.03;
  static constexpr unsigned kLargest = 15;
  static constexpr unsigned kUnknownStus = 3, kUnknownBytes = 16;  // exponents
  std::uint64_t stus_ = 0;
  std::uint32_t last_repeats_ = 0;
  double rate_ = 0, total_ = 0;
};

}  // namespace stp
