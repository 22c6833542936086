// SPDX-License-Identifier: BSD-3-Clause
// A station may be restarted in the middle of a trace, and knows nothing of before.
#pragma once

#include <vector>

#include "tools/replay/play/recording.h"

namespace stp::replay {

// Places of a trace: from `begin` up to, but not including, `end`.
struct Life {
  std::size_t begin = 0, end = 0;
};

// One, unless the station gives a Port of a live connection to another.
std::vector<Life> lives_of(const std::deque<Recorded>& trace, const MacAddr& station);

// A copy of those frames.
std::deque<Recorded> piece_of(const std::deque<Recorded>& trace, const Life& life);

}  // namespace stp::replay
