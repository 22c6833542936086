// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/round_trips.h"

#include <algorithm>

namespace stp::stpctl {

void RoundTrips::add(Time round_trip) {
  if (latest_.size() < kKept)
    latest_.push_back(round_trip);
  else
    latest_[count_ % kKept] = round_trip;
  min_ = count_ == 0 ? round_trip : std::min(min_, round_trip);
  max_ = std::max(max_, round_trip);
  sum_ += round_trip;
  ++count_;
}

Time RoundTrips::percentile(unsigned percent) const {
  if (latest_.empty()) return 0;
  auto sorted = latest_;
  // The smallest time that at least `percent` of them do not exceed: nearest rank, rounded up.
  const auto rank = std::max<std::size_t>((sorted.size() * percent + 99) / 100, 1);
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(sorted.begin(), at, sorted.end());
  return *at;
}

}  // namespace stp::stpctl
