// SPDX-License-Identifier: BSD-3-Clause
// The time of a Sequencer: owns the time of the latest call, and when time concerns each mechanism
// next. So expire() calls only those that are due, and touches no memory of the others. No call is
// later than its mechanism asked for; it may be earlier, and then finds nothing to do.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "stp/types.h"

namespace stp {

// How long the managed layer waits: for the peer's Node to answer; for the peer's user or managed
// layer to act; for progress of a Transfer; and for a user that is said to know of it.
// protocol: 10.11, 10.17
inline constexpr Time kAnswerPatience = 10 * kSecond;
inline constexpr Time kUserPatience = 30 * kSecond;
inline constexpr Time kProgressPatience = 30 * kSecond;
inline constexpr Time kSeenPatience = 24 * 3600 * kSecond;

// The mechanisms that wait for a time.
enum class Alarm : std::uint8_t {
  kOutbox,
  kRepeats,
  kEndings,
  kPuts,
  kGets,
  kWritesOut,
  kWritesIn,
  kAsksOut,
};
inline constexpr std::size_t kAlarms = 8;

class Clock {
 public:
  Clock() { stop(); }

  // Never goes back: a negative round trip would count as an endless one.
  Time tell(Time now) { return now_ = std::max(now_, now); }
  [[nodiscard]] Time now() const { return now_; }
  void due_at(Alarm alarm, Time when) {
    auto& due = due_[static_cast<std::size_t>(alarm)];
    due = std::min(due, when);
    deadline_ = std::min(deadline_, when);
  }
  // The first time that any mechanism asked for.
  [[nodiscard]] Time deadline() const { return deadline_; }
  // The mechanism waits for nothing until it calls due_at() again.
  void stop(Alarm alarm) {
    const auto due = std::exchange(due_[static_cast<std::size_t>(alarm)], kNever);
    if (due == deadline_) deadline_ = *std::min_element(due_.begin(), due_.end());
  }
  void stop() {
    due_.fill(kNever);
    deadline_ = kNever;
  }
  [[nodiscard]] bool is_due(Alarm alarm) const {
    return due_[static_cast<std::size_t>(alarm)] <= now_;
  }

 private:
  Time now_ = 0, deadline_ = kNever;
  std::array<Time, kAlarms> due_{};
};

}  // namespace stp
