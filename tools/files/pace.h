// SPDX-License-Identifier: BSD-3-Clause
// Limits the bytes per second if the user has set a limit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tools/files/link.h"

namespace stp::files {

class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  // 0: no limit.
  explicit Pace(std::uint64_t bytes_per_second = 0) : rate_(bytes_per_second) {}

  void spend(std::uint64_t bytes) { spend(bytes, Clock::now()); }
  void spend(std::uint64_t bytes, Clock::time_point now) {
    if (rate_ == 0) return;
    const auto seconds = static_cast<double>(bytes) / static_cast<double>(rate_);
    // Unused time is not saved up: there is no burst after a pause.
    free_at_ = std::max(free_at_, now) +
               std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }
  // The time until more may be sent.
  [[nodiscard]] Duration to_wait() const { return to_wait(Clock::now()); }
  [[nodiscard]] Duration to_wait(Clock::time_point now) const {
    return rate_ == 0 ? Duration::zero() : std::max(free_at_ - now, Duration::zero());
  }

 private:
  std::uint64_t rate_;
  Clock::time_point free_at_{};
};

}  // namespace stp::files
