// SPDX-License-Identifier: BSD-3-Clause
// Maps the names that each implementation chooses for itself, in the trace and on the live side.
// The mapping is one to one.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

namespace stp::replay {

enum class Name : std::uint8_t { kPort, kKey, kMx, kSync };

class Renaming {
 public:
  // Whether the two can be the same, according to what is already bound.
  [[nodiscard]] bool agree(Name kind, std::uint32_t in_trace, std::uint32_t live) const {
    const auto there = to_live_.find({kind, in_trace});
    const auto back = to_trace_.find({kind, live});
    if (there == to_live_.end() && back == to_trace_.end()) return true;
    return there != to_live_.end() && there->second == live && back != to_trace_.end() &&
           back->second == in_trace;
  }
  // Replaces earlier bindings of both.
  void bind(Name kind, std::uint32_t in_trace, std::uint32_t live) {
    if (const auto at = to_live_.find({kind, in_trace}); at != to_live_.end())
      to_trace_.erase({kind, at->second});
    if (const auto at = to_trace_.find({kind, live}); at != to_trace_.end())
      to_live_.erase({kind, at->second});
    to_live_[{kind, in_trace}] = live;
    to_trace_[{kind, live}] = in_trace;
  }
  // Returns the live name. If none is bound, returns the trace's name, or another if that one is
  // bound to a different name.
  [[nodiscard]] std::uint32_t live(Name kind, std::uint32_t in_trace) const {
    const auto at = to_live_.find({kind, in_trace});
    if (at != to_live_.end()) return at->second;
    return to_trace_.contains({kind, in_trace}) ? in_trace ^ 0x8000 : in_trace;
  }
  [[nodiscard]] bool knows(Name kind, std::uint32_t in_trace) const {
    return to_live_.contains({kind, in_trace});
  }
  // Whether a live name is bound to one of the trace.
  [[nodiscard]] bool stands(Name kind, std::uint32_t live) const {
    return to_trace_.contains({kind, live});
  }

 private:
  std::map<std::pair<Name, std::uint32_t>, std::uint32_t> to_live_, to_trace_;
};

}  // namespace stp::replay
