// SPDX-License-Identifier: BSD-3-Clause
// Statistics of round-trip times, in bounded memory: minimum, maximum and average are of all of
// them, percentiles of the latest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stp/types.h"

namespace stp::stpctl {

class RoundTrips {
 public:
  void add(Time round_trip);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] Time min() const { return min_; }
  [[nodiscard]] Time max() const { return max_; }
  [[nodiscard]] Time average() const { return count_ == 0 ? 0 : sum_ / count_; }
  // Returns the time that `percent` of the kKept latest do not exceed; 0 if there are none.
  [[nodiscard]] Time percentile(unsigned percent) const;

  static constexpr std::size_t kKept = std::size_t{1} << 20;

 private:
  std::vector<Time> latest_;
  std::uint64_t count_ = 0;
  Time sum_ = 0, min_ = 0, max_ = 0;
};

}  // namespace stp::stpctl
