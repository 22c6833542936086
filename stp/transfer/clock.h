// SPDX-License-Identifier: BSD-3-Clause
// The time of a Sequencer: owns the time of the latest call, and when time concerns each mechanism
// next. So expire() calls only those that are due, and touches no memory of the others. No call is
// later than its mechanism asked for; it may be earlier, and then finds nothing to do.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "stp/types.h"

namespace stp {

// How long the managed layer waits: for the peer's Node to answer; for the peer's user or managed
// layer to act; for progress of a Transfer; and for a user that is said to know of it.
// protocol: 10.11, 10.17
inline constexpr Time kAnswerPatience = 10 * kSecond;
inline constexpr Time kUserPatience = 30 * kSecond;
inline constexpr Time kProgressPatience = 30 * kSecond;
inline constexpr Time kSeenPatience = 24 * 3600 * kSecond;

// The mechanisms that wait for a time. The last ones stand beside the time of the call: each Put
// needs these.
enum class Alarm : std::uint8_t {
  kWritesOut,
  kWritesIn,
  kAsksOut,
  kRepeats,
  kEndings,
  kGets,
  kPuts,
  kOutbox,
};
inline constexpr std::size_t kAlarms = 8;

class Clock {
 public:
  // Never goes back: a negative round trip would count as an endless one.
  Time tell(Time now) { return now_ = std::max(now_, now); }
  [[nodiscard]] Time now() const { return now_; }
  void due_at(Alarm alarm, Time when) {
    auto& due = due_[static_cast<std::size_t>(alarm)];
    due = is_set(alarm) ? std::min(due, when) : when;
    set_ |= bit(alarm);
    deadline_ = std::min(deadline_, when);
  }
  // Of what the peer's user has to do: it is waited for as long as its Node answers.
  void be_patient() { patient_ = true; }
  [[nodiscard]] Time user_patience() const { return patient_ ? kSeenPatience : kUserPatience; }
  [[nodiscard]] Time progress_patience() const {
    return patient_ ? kSeenPatience : kProgressPatience;
  }
  // The first time that any mechanism asked for.
  [[nodiscard]] Time deadline() const { return deadline_; }
  // No mechanism waits for anything.
  [[nodiscard]] bool is_idle() const { return set_ == 0; }
  // The mechanism waits for nothing until it calls due_at() again.
  void stop(Alarm alarm) {
    if (!is_set(alarm)) return;
    set_ &= ~bit(alarm);
    if (due_[static_cast<std::size_t>(alarm)] == deadline_) deadline_ = earliest();
  }
  void stop() {
    set_ = 0;
    deadline_ = kNever;
  }
  [[nodiscard]] bool is_due(Alarm alarm) const {
    return is_set(alarm) && due_[static_cast<std::size_t>(alarm)] <= now_;
  }

 private:
  static std::uint32_t bit(Alarm alarm) { return 1U << static_cast<unsigned>(alarm); }
  [[nodiscard]] bool is_set(Alarm alarm) const { return (set_ & bit(alarm)) != 0; }
  [[nodiscard]] Time earliest() const {
    Time first = kNever;
    for (auto left = set_; left != 0; left &= left - 1)
      first = std::min(first, due_[static_cast<std::size_t>(std::countr_zero(left))]);
    return first;
  }

  std::array<Time, kAlarms> due_{};  // of those that are set
  Time now_ = 0, deadline_ = kNever;
  std::uint32_t set_ = 0;  // bit per alarm
  bool patient_ = false;
};

}  // namespace stp
