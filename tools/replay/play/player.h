// SPDX-License-Identifier: BSD-3-Clause
// Plays a trace against a live Node or a live peer that takes the place of one of its stations.
#pragma once

#include "tools/replay/play/matcher.h"
#include "tools/replay/play/subject.h"

namespace stp::replay {

struct PlayResult {
  std::vector<Difference> differences;
  std::vector<std::string> troubles;  // what could not be played
  std::vector<std::string> notes;     // what the trace does not show
  std::string refused;                // why nothing was played
  std::size_t delivered = 0, expected = 0, matched = 0;
};

// Whether the trace has frames from or to the station.
bool mentions(const std::deque<Recorded>& trace, const MacAddr& station);

PlayResult play_node(const std::deque<Recorded>& trace, const MacAddr& station);

// Plays to the station itself over the interface `link`, as long as the trace lasts. Sets `error`
// if the link cannot be used.
PlayResult play_link(const std::deque<Recorded>& trace, const MacAddr& station,
                     const std::string& link, std::string& error);

}  // namespace stp::replay
