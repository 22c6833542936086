// SPDX-License-Identifier: BSD-3-Clause
// The truth about a session of the managed layer: what was begun at one side and must be found at
// the other.
#pragma once

#include <map>
#include <set>
#include <string>

#include "tools/sim/region_truth.h"

namespace stp::sim {

struct WriteTruth {
  std::uint64_t length = 0;
  bool received = false;  // the receiver's program has been told
};

struct ReadTruth {
  std::uint64_t pattern = 0;
  bool arrived = false;
};

// The longest of what is sent, read or opened, and no two reads or regions are of one length: that
// is how the side that serves them knows which is which.
struct Ledger {
  std::uint64_t session = 0;
  std::uint64_t next_context = 1;
  std::map<std::uint32_t, WriteTruth> writes;    // by tag
  std::map<std::uint64_t, ReadTruth> reads;      // by length
  std::map<std::uint64_t, RegionTruth> regions;  // by length
  std::uint64_t refusals = 0, cancels = 0;       // that programs decided on
  std::uint64_t dropped = 0;                     // receives taken back, perhaps already filled
  std::string unexplained;  // a failure that nothing planned can have brought about

  std::uint64_t new_context() { return next_context++; }
  [[nodiscard]] std::uint64_t pattern(std::uint64_t number) const { return session << 20 | number; }
};

}  // namespace stp::sim
