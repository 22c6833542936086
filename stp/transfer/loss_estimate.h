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

  // log2 of the STUs per Block for which its CTS and repeats cost least. Small while nothing is
  // known, because all Blocks of a Transfer are as long as its first.
  [[nodiscard]] unsigned block_stus_log2(unsigned stu_log2) const {
    if (total_ == 0)
      return std::max(kUnknownStus, kUnknownBytes - std::min(stu_log2, kUnknownBytes));
    // Twice as many STUs save half of the CTS, and cost as many more repeats as there were.
    const auto saves_more = [this](unsigned log2) {
      const auto stus = static_cast<double>(1U << log2);
      return kCostOfBlock / (2 * stus) > rate_ * stus / 2;
    };
    unsigned log2 = 0;
    while (log2 < kLargest && saves_more(log2)) ++log2;
    return log2;
  }

 private:
  static constexpr std::uint64_t kSample = 256;
  static constexpr double kCostOfBlock = 0.5;  // of its CTS and the work on it, in STUs
  static constexpr unsigned kLargest = 15;
  static constexpr unsigned kUnknownStus = 3, kUnknownBytes = 16;  // exponents
  std::uint64_t stus_ = 0;
  std::uint32_t last_repeats_ = 0;
  double rate_ = 0, total_ = 0;
};

}  // namespace stp
