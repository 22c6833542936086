// SPDX-License-Identifier: BSD-3-Clause
// A Node's own questions (RS) about the free Slots of a connection's peer. One question is open at
// a time; after the answer "none" the next one waits (section 6).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "stp/channel/retry.h"

namespace stp {

// The Syncs of a Node's own last few questions. Answers to them, however often they arrive, are for
// the Node and not for its user.
// protocol: 6.10
class OwnAsks {
 public:
  void add(std::uint32_t sync) { syncs_[count_++ % kKept] = sync; }
  // The Sync of the last question. Requires one.
  [[nodiscard]] std::uint32_t newest() const { return syncs_[(count_ - 1) % kKept]; }
  [[nodiscard]] bool contains(std::uint32_t sync) const {
    const auto kept = static_cast<std::ptrdiff_t>(std::min(count_, kKept));
    const auto end = syncs_.begin() + kept;
    return std::find(syncs_.begin(), end, sync) != end;
  }

 private:
  static constexpr std::size_t kKept = 4;
  std::array<std::uint32_t, kKept> syncs_{};
  std::size_t count_ = 0;
};

class SlotQuestions {
 public:
  // Back-off while the peer has no free Slot: starts at kFirstPause and doubles up to
  // kLongestPause.
  // protocol: 6.7
  static constexpr Time kFirstPause = 200 * kMicrosecond, kLongestPause = 10 * kMillisecond;

  // A question leaves, marked with `sync`. The other arguments are as for Retry::start. Requires
  // !is_open().
  void ask(std::uint32_t sync, Time now, Time interval, Time patience,
           unsigned tries = Retry::kTries) {
    STP_ASSERT(!is_open(), "one question is open at a time");
    later_ = kNever;
    syncs_.add(sync);
    clock_.start(now, interval, patience, tries);
  }
  void left(Time now) { clock_.left(now); }
  [[nodiscard]] bool is_open() const { return clock_.running(); }
  // The Sync of the last question. Requires one.
  [[nodiscard]] std::uint32_t sync() const { return syncs_.newest(); }
  // Whether `sync` marks one of the Node's own questions; whether it marks the open one.
  [[nodiscard]] bool is_own(std::uint32_t sync) const { return syncs_.contains(sync); }
  [[nodiscard]] bool is_open(std::uint32_t sync) const { return is_open() && sync == this->sync(); }
  // The open question is answered. Returns the measured round trip; 0: unknown.
  Time answered(Time now) {
    const auto measured = clock_.measured(now);
    clock_.stop();
    return measured;
  }
  [[nodiscard]] bool due(Time now) const { return clock_.due(now); }
  // Call when due. False: give up; no question is open any more.
  bool again(Time now) { return clock_.again(now); }
  // When to repeat the open question; kNever: none is open.
  [[nodiscard]] Time repeat_at() const { return clock_.deadline(); }

  // The answer was "no free Slot": delays the next question.
  void postpone(Time now) {
    pause_ = pause_ == 0 ? kFirstPause : std::min(pause_ * 2, kLongestPause);
    later_ = now + pause_;
  }
  [[nodiscard]] bool postponed() const { return later_ != kNever; }
  // Whether the delay of the next question has passed.
  [[nodiscard]] bool is_time(Time now) const { return now >= later_; }
  // Credit is available again: the next pause is short.
  void has_credit() { pause_ = 0; }

  // The earliest time to act.
  [[nodiscard]] Time deadline() const { return std::min(clock_.deadline(), later_); }
  // Cancels the open question and the next one.
  void stop() {
    clock_.stop();
    later_ = kNever;
  }

 private:
  Retry clock_;
  OwnAsks syncs_;
  Time later_ = kNever;
  Time pause_ = 0;
};

}  // namespace stp
