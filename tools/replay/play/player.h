// SPDX-License-Identifier: BSD-3-Clause
// Plays a trace against a live Node or a live peer that takes the place of one of its stations, and
// compares what it sends with what the trace shows.
#pragma once

#include <list>
#include <set>
#include <string>
#include <vector>

#include "tools/replay/play/subject.h"

namespace stp::replay {

struct Difference {
  std::uint64_t frame = 0;     // number in the trace, or 0 if the trace has no such frame
  std::string in_trace, live;  // empty if that side has no such frame
};

// Compares what the live side sends with what the trace shows.
class Matcher {
 public:
  explicit Matcher(Renaming& names) : names_(names) {}

  void reach(std::uint64_t frame) { reached_ = frame; }  // how far the trace has been played
  // The trace is over: frames that are still missing may arrive, and all others are ignored.
  void trace_over() { over_ = true; }
  void expect(const Recorded& frame);  // must stay valid at its address
  void sent(const Recorded& frame);    // copied
  // The peer has answered a Node's own RS with that Sync, so no later RS can match it.
  void question_over(std::uint32_t sync);
  // The frames without a partner, in the order of the trace. Repeats of matched frames are not
  // included, because their number depends on the link and on timers. A Node's own questions for
  // Slots are not included either.
  std::vector<Difference> differences();
  [[nodiscard]] std::size_t matched() const { return matched_; }

 private:
  struct Live {
    std::vector<std::byte> bytes;
    Decoded decoded;
    std::uint64_t reached = 0;
  };
  bool pair(const Decoded& in_trace, const Decoded& live);
  [[nodiscard]] bool is_repeat(const Decoded& in_trace) const;

  Renaming& names_;
  std::list<const Recorded*> expected_;
  std::list<Live> live_;
  std::set<std::vector<std::byte>> done_;  // without local choices
  std::uint64_t reached_ = 0;
  bool over_ = false;
  std::size_t matched_ = 0;
};

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
