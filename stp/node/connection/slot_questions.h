// SPDX-License-Identifier: BSD-3-Clause
// What a connection knows from its peer's answers: free Slots, open questions, and Blocks that do
// not arrive (section 6).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "stp/channel/retry.h"

namespace stp {

// A sender's view of the Slots free at its peer (section 6).
// protocol: 6.5
class SlotCredit {
 public:
  void reset(std::uint32_t slots) {
    slots_ = credit_ = slots;
    ask_at_ = slots / 2;
  }
  [[nodiscard]] std::uint32_t credit() const { return credit_; }
  [[nodiscard]] bool available() const { return credit_ > 0; }
  // protocol: 6.6
  [[nodiscard]] bool should_ask() const { return credit_ <= ask_at_; }

  void spend() {
    --credit_;
    ++spent_;
  }
  // A question (RS) about the peer's Slots leaves now, marked with `sync`. `unsent` operations
  // already counted by spend() leave after it.
  void asked(std::uint32_t sync, std::uint32_t unsent = 0) {
    if (open_ == 0) next_ = 0;  // so few are open at a time that they use the same place
    if (is_open(next_)) thin_out();
    asks_[next_ % kPlaces] = {sync, spent_ - unsent};
    open_ |= bit(next_++);
  }

  // The answer to question `sync`: `free` Slots were free when the peer handled it. False: no such
  // question is open (an old or repeated answer); nothing changes.
  bool answered(std::uint32_t sync, std::uint32_t free) {
    // Mostly none is open: then this looks at none.
    auto left = open_;
    for (auto at = next_ - 1; left != 0; --at) {
      if ((left & bit(at)) == 0) continue;
      left &= ~bit(at);
      if (asks_[at % kPlaces].sync != sync) continue;
      const auto since = spent_ - asks_[at % kPlaces].spent;
      close_older(at);
      credit_ = free > since ? free - since : 0;
      // Prevents a question after each operation when the peer reads slowly. What is on its way
      // along a long path has not made it slow.
      ask_at_ = std::min(slots_ / 2, free / 2);
      return true;
    }
    return false;
  }

 private:
  static constexpr std::uint32_t kPlaces = 16;
  struct Ask {
    std::uint32_t sync = 0, spent = 0;
  };
  static constexpr std::uint32_t bit(std::uint32_t at) { return 1U << at % kPlaces; }
  [[nodiscard]] bool is_open(std::uint32_t at) const { return (open_ & bit(at)) != 0; }
  // More questions are under way than have a place. Forgets every second one: if it forgot the
  // oldest ones, it would know none of them when its answer comes, however long that takes.
  void thin_out() {
    std::uint32_t open = 0;
    for (std::uint32_t i = 0; i < kPlaces / 2; ++i) {
      asks_[(next_ + i) % kPlaces] = asks_[(next_ + 2 * i) % kPlaces];
      if (is_open(next_ + 2 * i)) open |= bit(next_ + i);
    }
    open_ = open;
    next_ += kPlaces / 2;
  }
  // Closes this question, and earlier ones: their answers are older. Mostly it is the only one.
  void close_older(std::uint32_t at) {
    const auto spent = asks_[at % kPlaces].spent;
    for (auto left = open_; left != 0; left &= left - 1) {
      const auto place = static_cast<std::uint32_t>(std::countr_zero(left));
      if (static_cast<std::int32_t>(spent - asks_[place].spent) >= 0) open_ &= ~bit(place);
    }
  }

  std::uint32_t slots_ = 0, credit_ = 0, ask_at_ = 0;
  std::uint32_t spent_ = 0;  // wraps at 2^32
  std::uint32_t next_ = 0;
  std::uint32_t open_ = 0;  // bit per place
  std::array<Ask, kPlaces> asks_{};
};

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

// A Node's own questions (RS) about the free Slots of a connection's peer. One question is open at
// a time; after the answer "none" the next one waits (section 6).
class SlotQuestions {
 public:
  // Back-off while the peer has no free Slot: starts at kFirstPause and doubles up to
  // kLongestPause.
  // protocol: 6.7
  static constexpr Time kFirstPause = 200 * kMicrosecond, kLongestPause = 10 * kMillisecond;
  // Up to which the intervals of a question double, unless the timeout is longer.
  // protocol: 5.23
  static constexpr Time kLongestInterval = 500 * kMillisecond;

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
  // The open question is answered. `round_trip` learns from it.
  void answered(RoundTrip& round_trip, Time now) {
    clock_.measure(round_trip, now);
    clock_.stop();
  }
  [[nodiscard]] bool due(Time now) const { return clock_.due(now); }
  // Call when due. False: give up; no question is open any more.
  bool again(Time now) { return clock_.again(now, kLongestInterval); }
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

// What a connection's own grants and the peer's answers say about Blocks that do not arrive.
// Recovery decides by it when to request them again.
class RecoveryState {
 public:
  // The last CTS left no later than `now`.
  void grant_left(Time now) { granted_at_ = now; }
  // The peer cannot send before it learns that a Slot is free here again.
  void has_no_slot(Time now) { no_slot_until_ = now + SlotQuestions::kLongestPause; }
  // The peer has answered the question `sync`. `all_read`: its user has read all that was sent.
  void answered(std::uint32_t sync, bool all_read, const RoundTrip& round_trip, Time now) {
    if (!doubt_.is_open()) return;
    check_at_ = now;
    if (doubt_.is_answer(sync))
      check_at_ += doubt_.answered(all_read, now) ? round_trip.timeout()
                                                  : doubt_.pause(shortest_timeout(round_trip));
  }
  // Nothing is to arrive any more.
  void stop() { check_at_ = kNever; }
  // Time of the next check whether granted Blocks make progress.
  [[nodiscard]] Time deadline() const { return check_at_; }

  static constexpr Time kMinDataTimeout = kMillisecond;
  static Time shortest_timeout(const RoundTrip& round_trip) {
    return std::max(4 * round_trip.smoothed(), kMinDataTimeout);
  }

 private:
  friend class Recovery;
  Time granted_at_ = 0;
  Time check_at_ = kNever;
  Time no_slot_until_ = 0;
  Doubt doubt_;  // whether the sender has seen the grants
};

}  // namespace stp
