// SPDX-License-Identifier: BSD-3-Clause
// Caches the system's clock for up to kOldest, which the processor's counter measures. A turn of an
// idle link takes about 100 ns, and asking the system each time would be 20% of it.
#pragma once

#include "stp/types.h"

namespace stp::port {

class TurnClock {
 public:
  // The greatest age of a cached time.
  static constexpr Time kOldest = kMicrosecond;

  TurnClock();
  // Returns port::now(), or a time up to kOldest earlier (after heed(), than what that was told);
  // never goes back. One thread at a time.
  Time now();
  // Instead of now(): the caller knows that it is `present`, and not much later.
  Time heed(Time present);
  // What now() returned last.
  [[nodiscard]] Time last() const { return time_; }

 private:
  const std::uint64_t oldest_;  // in ticks of the counter
  std::uint64_t asked_ = 0;     // the counter when `time_` was read
  Time time_ = 0;
};

}  // namespace stp::port
