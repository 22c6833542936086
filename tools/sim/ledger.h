// SPDX-License-Identifier: BSD-3-Clause
// The expected results of a session of the managed layer: what one side has begun and the other
// side must find.
#pragma once

#include <map>
#include <set>
#include <string>

#include "tools/sim/region_truth.h"

namespace stp::sim {

struct WriteTruth {
  std::uint64_t length = 0;
  bool received = false;  // reported to the receiver's program
};

struct ReadTruth {
  std::uint64_t pattern = 0;
  bool arrived = false;
};

// No two reads and no two regions of a session have the same length: the serving side identifies
// them by it.
struct Ledger {
  std::uint64_t session = 0;
  std::uint64_t next_context = 1;
  std::map<std::uint32_t, WriteTruth> writes;    // by tag
  std::map<std::uint64_t, ReadTruth> reads;      // by length
  std::map<std::uint64_t, RegionTruth> regions;  // by length
  std::uint64_t refusals = 0, cancels = 0;       // made by the programs
  std::uint64_t dropped = 0;                     // receives cancelled, perhaps already filled
  std::string unexplained;                       // a failure that no planned event explains

  std::uint64_t new_context() { return next_context++; }
  [[nodiscard]] std::uint64_t pattern(std::uint64_t number) const { return session << 20 | number; }
};

}  // namespace stp::sim
