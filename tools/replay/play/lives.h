// SPDX-License-Identifier: BSD-3-Clause
// Finds restarts of a station in a trace. A restarted station knows nothing of earlier connections.
#pragma once

#include <vector>

#include "tools/replay/play/recording.h"

namespace stp::replay {

// Places of a trace: from `begin` up to, but not including, `end`.
struct Life {
  std::size_t begin = 0, end = 0;
};

// Returns one Life, unless the station gives the Port of a live connection to another one.
std::vector<Life> lives_of(const std::deque<Recorded>& trace, const MacAddr& station);

// Returns a copy of those frames.
std::deque<Recorded> piece_of(const std::deque<Recorded>& trace, const Life& life);

}  // namespace stp::replay
