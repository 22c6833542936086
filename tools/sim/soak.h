// SPDX-License-Identifier: BSD-3-Clause
// A long time of connections that are made, used and closed over a link with faults: whether
// anything grows.
#pragma once

#include <string>
#include <vector>

#include "stp/types.h"

namespace stp::sim {

struct SoakResult {
  std::vector<std::string> failures;
  Time simulated = 0;
  std::uint64_t sessions = 0, frames = 0;
  // The most bytes of the heap in use between two sessions, in the second and in the last quarter.
  std::size_t early = 0, late = 0;
};

// What comes and goes by chance; more is growth.
inline constexpr std::size_t kSoakSlack = std::size_t{32} << 10;

// Nothing else may run in this process: all of its heap is looked at.
SoakResult play_soak(Time span, std::uint64_t seed);

}  // namespace stp::sim
