// SPDX-License-Identifier: BSD-3-Clause
// A soak test: makes, uses and closes connections over a faulty link for a long simulated time, and
// measures whether memory grows.
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

// Random variation between the two. More is growth.
inline constexpr std::size_t kSoakSlack = std::size_t{32} << 10;

// Nothing else may run in this process, because its whole heap is measured.
SoakResult play_soak(Time span, std::uint64_t seed);

}  // namespace stp::sim
