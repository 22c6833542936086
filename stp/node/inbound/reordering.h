// SPDX-License-Identifier: BSD-3-Clause
// How far STUs of a connection fall behind others on their way. What is farther behind is lost, and
// is asked for without waiting (docs/protocol.md, 10.22).
#pragma once

#include <bit>
#include <cstdint>

namespace stp {

class Reordering {
 public:
  // STUs.
  static constexpr std::uint32_t kLeast = 8, kMost = 1024;
  // After so many requests that were needed, half the distance is tried again.
  static constexpr std::uint32_t kNeeded = 64;

  // What is at least so many STUs behind others is lost.
  [[nodiscard]] std::uint32_t distance() const { return 1U << log2_; }
  // Something was asked for because it was that far behind.
  void asked() {
    asked_ = true;
    if (++needed_ < kNeeded) return;
    needed_ = 0;
    if (distance() > kLeast) --log2_;
  }
  // It has come by itself, so it had only fallen behind.
  void came_late() {
    if (!asked_) return;
    asked_ = false;
    needed_ = 0;
    if (distance() < kMost) ++log2_;
  }

 private:
  std::uint8_t log2_ = std::countr_zero(kLeast);
  std::uint8_t needed_ = 0;
  bool asked_ = false;  // since it last came late
};

}  // namespace stp
