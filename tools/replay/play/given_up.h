// SPDX-License-Identifier: BSD-3-Clause
// Connections that the station has given up, as its peer was silent for too long. A Node in its
// place asks by other clocks, so when it would have done so is not in the trace.
#pragma once

#include <map>

#include "tools/replay/play/recording.h"

namespace stp::replay {

class GivenUp {
 public:
  GivenUp(const std::deque<Recorded>& trace, const MacAddr& station);

  // Whether the frame to the station at that place comes too late: the connection has failed.
  [[nodiscard]] bool ignores(std::size_t at) const;
  // Whether the connection of that frame fails in the end.
  [[nodiscard]] bool fails(std::size_t at) const {
    return from_.contains(line_of(trace_[at], station_));
  }

 private:
  const std::deque<Recorded>& trace_;
  MacAddr station_;
  std::map<Line, std::size_t> from_;  // the first frame that was ignored
};

}  // namespace stp::replay
