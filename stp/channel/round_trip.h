// SPDX-License-Identifier: BSD-3-Clause
// Round-trip time of a connection, by RFC 6298, with this profile's bounds (section 5).
#pragma once

#include <algorithm>

#include "stp/types.h"

namespace stp {

// protocol: 5.20
class RoundTrip {
 public:
  static constexpr Time kInitial = 10 * kMillisecond;
  static constexpr Time kMinimum = 200 * kMicrosecond;
  static constexpr Time kMaximum = kSecond;
  // Limits timeout(): a peer that was not scheduled on a core makes a short round trip look long,
  // and a lost request would then wait long for its retry.
  static constexpr Time kLongestPause = 50 * kMillisecond;

  // Call only for exchanges whose request was sent once (Karn's rule).
  void sample(Time measured) {
    shortest_ = std::min(shortest_, std::max<Time>(measured, 1));
    if (smoothed_ == 0) {
      smoothed_ = std::max<Time>(measured, 1);
      variation_ = measured / 2;
      return;
    }
    const auto error = measured > smoothed_ ? measured - smoothed_ : smoothed_ - measured;
    variation_ += error / 4 - variation_ / 4;
    smoothed_ += measured / 8 - smoothed_ / 8;
  }
  [[nodiscard]] Time smoothed() const { return smoothed_ == 0 ? kInitial : smoothed_; }
  [[nodiscard]] Time timeout() const {
    if (smoothed_ == 0) return kInitial;
    const auto longest = std::min(std::max(kLongestPause, 4 * shortest_), kMaximum);
    return std::clamp(smoothed_ + 4 * variation_, kMinimum, longest);
  }

 private:
  Time smoothed_ = 0, variation_ = 0;
  Time shortest_ = kSecond;
};

}  // namespace stp
