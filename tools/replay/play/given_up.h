// SPDX-License-Identifier: BSD-3-Clause
// Finds connections that the station gave up because its peer was silent for too long. A Node in
// its place has other timers, so the trace does not show when the Node would give up.
#pragma once

#include <map>

#include "tools/replay/play/recording.h"

namespace stp::replay {

class GivenUp {
 public:
  GivenUp(const std::deque<Recorded>& trace, const MacAddr& station);

  // Whether the station ignores the frame at that place because the connection has failed.
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
