// SPDX-License-Identifier: BSD-3-Clause
// Holds what the live side sends against what the trace shows.
#pragma once

#include <list>
#include <set>
#include <string>
#include <vector>

#include "tools/replay/play/recording.h"
#include "tools/replay/play/renaming.h"

namespace stp::replay {

struct Difference {
  std::uint64_t frame = 0;     // of the trace; 0: the trace has none
  std::string in_trace, live;  // either may be empty: nothing of the kind
};

class Matcher {
 public:
  explicit Matcher(Renaming& names) : names_(names) {}

  void reach(std::uint64_t frame) { reached_ = frame; }  // how far the trace has been played
  // The trace is over: what is still missing may come, what else comes is nobody's business.
  void trace_over() { over_ = true; }
  void expect(const Recorded& frame);  // must stay where it is
  void sent(const Recorded& frame);    // kept as a copy
  // The peer has answered a Node's own RS of that Sync: no later one can be it.
  void question_over(std::uint32_t sync);
  // What found no partner, in the order of the trace. Repeats of frames that did are no
  // difference, for their number is the link's and the timers' doing; nor are a Node's own
  // questions for Slots.
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

}  // namespace stp::replay
