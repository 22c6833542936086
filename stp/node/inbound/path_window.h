// SPDX-License-Identifier: BSD-3-Clause
// How many bytes may be on their way along a path that others use, too. Grows while what is asked
// for arrives without waiting in the queues of routers, and shrinks when it waits or is lost
// (docs/protocol.md, section 13). The control is that of Copa (Arun and Balakrishnan, NSDI 2018):
// each sender keeps about two STUs in the queue, and moves around that, so that the queue is empty
// from time to time and everybody sees how long the path is without it.
#pragma once

#include <cstdint>

#include "stp/types.h"

namespace stp {

// The smallest value of a recent time: between one and two periods.
class RecentMinimum {
 public:
  void note(Time value, Time now, Time period);
  [[nodiscard]] Time value() const { return before_ < present_ ? before_ : present_; }

 private:
  Time since_ = 0, before_ = kNever, present_ = kNever;
};

class PathWindow {
 public:
  // `stu`: bytes of the longest STU.
  explicit PathWindow(std::uint64_t stu);

  // `bytes` have arrived. `delay`: the time since they were asked for; 0: not known. `full`: all of
  // the window was in use.
  // protocol: 13.10, 13.11
  void arrived(std::uint64_t bytes, Time delay, bool full, Time now);
  // Something has been lost on the way.
  // protocol: 13.12
  void lost(Time now);

  [[nodiscard]] std::uint64_t bytes() const {
    return drains_ ? drained() : static_cast<std::uint64_t>(window_);
  }
  // It has been found out how much the path carries, at least once.
  [[nodiscard]] bool is_known() const { return !starts_; }
  // The mean time from asking to arrival; 0: not known.
  [[nodiscard]] Time round_trip() const { return round_trip_; }

 private:
  void measure(Time delay, bool full, Time now);
  void look_at_path(Time delay, Time now);
  [[nodiscard]] bool may_grow() const;
  [[nodiscard]] std::uint64_t drained() const;
  void turn(bool up, Time now);

  const double stu_;
  double window_;
  bool starts_ = true;  // nothing has waited or been lost: the window doubles each round trip
  Time round_trip_ = 0;
  RecentMinimum standing_;  // of half a round trip: the queue, without what comes in bursts
  // The path without a queue: the smallest delay, and when it was last as small. If that is long
  // ago, the window is smaller until the queue of this sender is gone.
  Time shortest_ = kNever, seen_ = 0;
  bool drains_ = false;
  Time drained_ = 0;     // then it is gone
  Time least_ = kNever;  // the smallest delay since
  // The steps double while the window keeps its direction.
  double step_ = 1;
  bool up_ = true;
  unsigned same_ = 0;        // round trips in this direction
  Time looked_ = 0;          // when the direction was last looked at
  double window_then_ = 0;   // the window at that time
  Time recovers_until_ = 0;  // losses before that time have been answered
};

}  // namespace stp
