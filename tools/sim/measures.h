// SPDX-License-Identifier: BSD-3-Clause
// Runs that measure: an incast, long writes over a lossy link, and memory over a long time.
#pragma once

#include <string>
#include <vector>

#include "stp/types.h"
#include "tools/sim/host.h"

namespace stp::sim {

// Incast: many senders, one receiver, and a switch port between them whose buffer is too small for
// all of them.
struct IncastResult {
  bool passed = false;
  std::uint64_t drops = 0;  // frames that found no room in the switch
  double line_rate = 0;     // users' share of the receiver's bit rate: 0..1
  double worst_finish = 0;  // finish of the last sender, as a multiple of the least possible time
};

// 1 MiB each, at 100 Gbit/s and 2 us per hop, 256 KiB of buffer at the port.
// `granted_limit` as in NodeConfig; 0: no pacing.
IncastResult play_incast(unsigned senders, std::uint64_t granted_limit);

// A limit that suits the link: more than its bandwidth-delay product, less than the port's buffer.
std::uint64_t incast_limit();

// One long write over a link that loses, reorders and duplicates frames, between hosts that are not
// always scheduled. Measures the bytes sent and the goodput.

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

// A stream of writes of 1 MiB, 16 at a time, over a link that loses frames: what the frames cost
// besides the bytes. STUs of 8 KiB, 20 Gbit/s, 6 us per hop.
struct StreamResult {
  bool passed = false;
  double frames = 0, bytes = 0;  // sent by both hosts for each write
  double goodput = 0;            // users' bits per second
};

StreamResult play_stream(const Faults& faults, std::uint64_t seed);

// A soak test: makes, uses and closes connections over a faulty link for a long simulated time, and
// measures whether memory grows.
struct SoakResult {
  std::vector<std::string> failures;
  Time simulated = 0;
  std::uint64_t sessions = 0, frames = 0;
  // The most bytes of the heap in use between two sessions, in the second and in the last quarter.
  std::size_t early = 0, late = 0;
};

// Random variation between the two. More is growth.
inline constexpr std::size_t kSoakSlack = std::size_t{32} << 10;

// Nothing else may run in this process, because its whole heap is measured.
SoakResult play_soak(Time span, std::uint64_t seed);

}  // namespace stp::sim
