// SPDX-License-Identifier: BSD-3-Clause
// One run. A profile, a seed and the number of Nodes behind each address determine everything else.
#pragma once

#include "tools/sim/scenario.h"

namespace stp::sim {

struct Result {
  std::vector<std::string> failures;
  std::uint64_t hash = 0;  // of all frames on the wires and their times
  Time simulated = 0;
  std::uint64_t frames = 0, bytes = 0, faults = 0;
  std::uint64_t delivered = 0;  // users' bytes placed in memory
  OpCounts ops{};               // frames of each operation
  // repeats: requests and CTS sent again, and STUs received again. Without faults they are
  // needless. calls: RC and RD sent again; a sender cannot ask whether these arrived. questions:
  // all RS.
  std::uint64_t repeats = 0, calls = 0, questions = 0;
  std::uint64_t handed_over = 0;  // frames from one Node to another behind the same address
};

struct Watch {
  std::FILE* text = nullptr;         // a line per frame and event
  std::unique_ptr<PcapngFile> file;  // every frame, as it is sent
  std::optional<MacAddr> station;    // limits the file to frames that it sends or receives
};

// `nodes`: 1 to Shards::kMost.
Result simulate(const Profile& profile, std::uint64_t seed, Watch watch = {}, unsigned nodes = 1);
// Plays a scenario of the caller.
Result simulate(const Scenario& scenario, Dice dice, Watch watch = {});

}  // namespace stp::sim
