// SPDX-License-Identifier: BSD-3-Clause
// One long write over a link that loses, reorders and duplicates frames, between hosts that are not
// always scheduled. Measures the bytes sent and the goodput.
#pragma once

#include "tools/sim/host.h"

namespace stp::sim {

inline constexpr std::uint64_t kLossyLength = std::uint64_t{32} << 20;

// The faults of the lines of a comparison.
inline constexpr Faults kOnePercent{.loss = kAlways / 100};
inline constexpr Faults kTenTenFive{.loss = kAlways / 10,
                                    .duplicate = kAlways / 20,
                                    .reorder = kAlways / 10,
                                    .reorder_by = 20 * kMicrosecond};

struct LossyResult {
  bool passed = false;
  std::uint64_t bytes = 0;  // sent by both hosts
  double goodput = 0;       // users' bits per second
};

// A host that shares its core: the loop runs for a few milliseconds at a time.
inline constexpr HostConfig::Pauses kBusyCore{.count = 40,
                                              .every = 4 * kMillisecond,
                                              .shortest = 10 * kMillisecond,
                                              .longest = 200 * kMillisecond};

// STUs of 8 KiB, 10 Gbit/s, 2 us per hop.
LossyResult play_lossy(const Faults& faults, std::uint64_t seed,
                       const HostConfig::Pauses& of_receiver = {},
                       const HostConfig::Pauses& of_sender = {});

}  // namespace stp::sim
