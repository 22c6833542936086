// SPDX-License-Identifier: BSD-3-Clause
// One long write over a link that loses, reorders and duplicates, between hosts that are not always
// scheduled: what it costs beyond the bytes.
#pragma once

#include "tools/sim/host.h"

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

// A host whose core is shared with others: the loop runs for some milliseconds at a time.
inline constexpr HostConfig::Pauses kBusyCore{.count = 40,
                                              .every = 4 * kMillisecond,
                                              .shortest = 10 * kMillisecond,
                                              .longest = 200 * kMillisecond};

// STUs of 8 KiB, 10 Gbit/s, 2 us per hop. The two hosts pause as they say.
LossyResult play_lossy(const Faults& faults, std::uint64_t seed,
                       const HostConfig::Pauses& of_receiver = {},
                       const HostConfig::Pauses& of_sender = {});

}  // namespace stp::sim
