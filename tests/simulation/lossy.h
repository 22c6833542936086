// SPDX-License-Identifier: BSD-3-Clause
// One long write over a link that loses, reorders and duplicates: what it costs beyond the bytes.
#pragma once

#include "tests/simulation/wire.h"

namespace stp::sim {

inline constexpr std::uint64_t kLossyLength = std::uint64_t{32} << 20;

// What the three lines of a comparison suffer.
inline constexpr Faults kOnePercent{.loss = kAlways / 100};
inline constexpr Faults kTenTenFive{.loss = kAlways / 10,
                                    .duplicate = kAlways / 20,
                                    .reorder = kAlways / 10,
                                    .reorder_by = 20 * kMicrosecond};

struct LossyResult {
  bool passed = false;
  std::uint64_t bytes = 0;  // that both hosts put on the wire
  double goodput = 0;       // users' bits per second
};

// STUs of 8 KiB, 10 Gbit/s, 2 us per hop.
LossyResult play_lossy(const Faults& faults, std::uint64_t seed);

}  // namespace stp::sim
