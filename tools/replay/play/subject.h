// SPDX-License-Identifier: BSD-3-Clause
// What takes the place of a station of a trace, and the names that it chooses for itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "tools/replay/play/recording.h"

namespace stp::replay {

enum class Name : std::uint8_t { kPort, kKey, kMx, kSync };

// Maps the names that each implementation chooses for itself, in the trace and on the live side.
// The mapping is one to one.
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

// What takes the place of a station of a trace: a Node, or a peer on a real link.
class Subject {
 public:
  // Called with each frame that it sends.
  using Output = std::function<void(const Recorded&)>;
  virtual ~Subject() = default;

  // Whether it may be given more Slots than the peer of the trace has.
  [[nodiscard]] virtual bool wants_credit() const = 0;

  // Advances the trace's clock to `now`.
  virtual void advance(std::int64_t now) = 0;
  // Delivers a frame, which has the subject's names. `at`: its place in the trace.
  virtual void deliver(std::size_t at, Bytes frame) = 0;
  // The trace shows that the station sends frame `at`. If that was a user's decision, makes the
  // same decision. Returns false if the subject cannot do it.
  virtual bool decide(std::size_t at) = 0;
};

}  // namespace stp::replay
