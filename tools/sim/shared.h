// SPDX-License-Identifier: BSD-3-Clause
// Long writes through a bottleneck that flows of TCP use, too. Each write has hosts of its own, or
// all go to one host.
#pragma once

#include "tools/sim/bottleneck.h"

namespace stp::sim {

struct SharedPath {
  BottleneckConfig bottleneck;
  unsigned writes = 1, cubic = 0;
  bool to_one = false;
  unsigned max_stu = 10;  // exponents
  unsigned max_block = 14;
  std::uint32_t cts_window = 64;      // Blocks that are granted at once
  bool routed = false;                // as in NodeConfig
  Time every = 0;                     // between the beginnings of the flows, of either kind
  Time warm_up = 0, lasts = kSecond;  // what happens in `lasts` after `warm_up` is counted
  std::uint64_t length = 0;           // of each write; 0: more than fits this time
};

struct SharedResult {
  bool passed = false;     // no fault was noticed
  double use = 0;          // part of the rate that was used
  double fair = 0;         // Jain's index of the writes
  double cubic_share = 0;  // of a flow of TCP on average, in fair shares
  Time delay = 0;          // mean time in the queue
  std::uint64_t drops = 0;
  unsigned finished = 0;  // writes
};

SharedResult play_shared(const SharedPath& path);

}  // namespace stp::sim
