// SPDX-License-Identifier: BSD-3-Clause
// One run: a profile and a seed give everything else.
#pragma once

#include "tools/sim/scenario.h"

namespace stp::sim {

struct Result {
  std::vector<std::string> failures;
  std::uint64_t hash = 0;  // of all that went over the wires, and when
  Time simulated = 0;
  std::uint64_t frames = 0, bytes = 0, faults = 0;
  std::uint64_t delivered = 0;  // users' bytes placed in memory
  OpCounts ops{};               // frames of each operation
  // Requests and CTS sent once more, and STUs that came once more: where nothing went wrong, in
  // vain. RC and RD, of which nobody can be asked whether they came; and all RS.
  std::uint64_t repeats = 0, calls = 0, questions = 0;
};

struct Watch {
  std::FILE* text = nullptr;         // a line per frame and event
  std::unique_ptr<PcapngFile> file;  // every frame, as it is sent
  std::optional<MacAddr> station;    // only those that it sends, and that reach it
};

Result simulate(const Profile& profile, std::uint64_t seed, Watch watch = {});
// A scenario of the caller's own.
Result simulate(const Scenario& scenario, Dice dice, Watch watch = {});

}  // namespace stp::sim
