// SPDX-License-Identifier: BSD-3-Clause
// When an unanswered request is repeated: the round-trip time, the retry clock, and the doubt
// whether the request is lost or unseen.
#pragma once

#include <algorithm>
#include <cstdint>

#include "stp/base/assert.h"
#include "stp/types.h"

namespace stp {

// Round-trip time of a connection, by RFC 6298, with this profile's bounds (section 5).
// protocol: 5.20
class RoundTrip {
 public:
  static constexpr Time kInitial = 10 * kMillisecond;
  static constexpr Time kMinimum = 200 * kMicrosecond;
  static constexpr Time kMaximum = kSecond;
  // Limits timeout(): a peer that was not scheduled on a core makes a short round trip look long,
  // and a lost request would then wait long for its retry.
  static constexpr Time kLongestPause = 50 * kMillisecond;

  // Call only for exchanges whose request was sent once (Karn's rule).
  void sample(Time measured) {
    shortest_ = std::min(shortest_, std::max<Time>(measured, 1));
    if (smoothed_ == 0) {
      smoothed_ = std::max<Time>(measured, 1);
      variation_ = measured / 2;
      return;
    }
    const auto error = measured > smoothed_ ? measured - smoothed_ : smoothed_ - measured;
    variation_ += error / 4 - variation_ / 4;
    smoothed_ += measured / 8 - smoothed_ / 8;
  }
  // An exchange whose request was sent several times took this long. While nothing else is known,
  // the next request waits for longer than that, so that its answer is a sample. If that one is
  // sent several times, too, frames are being lost: the one after it begins with kInitial again.
  // Else each loss would double the wait for the next one.
  void at_most(Time took) {
    if (smoothed_ == 0) variation_ = variation_ == 0 ? took : 0;
  }
  // 0: nothing has been measured.
  [[nodiscard]] Time measured() const { return smoothed_; }
  [[nodiscard]] Time smoothed() const { return smoothed_ == 0 ? kInitial : smoothed_; }
  [[nodiscard]] Time timeout() const {
    if (smoothed_ == 0) return std::clamp(2 * variation_, kInitial, kMaximum);
    const auto longest = std::min(std::max(kLongestPause, 4 * shortest_), kMaximum);
    return std::clamp(smoothed_ + 4 * variation_, kMinimum, longest);
  }

 private:
  Time smoothed_ = 0;
  Time variation_ = 0;  // before the first sample: what at_most() said
  Time shortest_ = kSecond;
};

// The retry clock of one request: the intervals double up to one second, or less.
// protocol: 5.21, 5.22
class Retry {
 public:
  static constexpr unsigned kTries = 8;

  // `tries`: the number of tries, including the first. `patience`: gives up no sooner than this,
  // however short the intervals. On a fast link eight doublings of 200 us pass while a busy peer is
  // merely scheduled out.
  void start(Time now, Time interval, Time patience = 0, unsigned tries = kTries) {
    STP_ASSERT(tries > 0 && interval > 0, "a request is sent once at least, and waited for");
    allowed_ = static_cast<std::uint16_t>(tries);
    first_ = now;
    interval_ = interval;
    patience_ = patience;
    tries_ = 1;
    deadline_ = now + interval;
  }
  // The request has not left yet: restarts the clock.
  void postpone(Time now) {
    first_ = now;
    deadline_ = now + interval_;
  }
  // The request has left.
  void left(Time now) {
    if (running()) deadline_ = std::max(deadline_, now + interval_);
  }
  // It has its turn after others, and the last of them was at `now`. Its interval begins there, and
  // its patience, too, if it is repeated.
  void waits(Time now) {
    left(now);
    if (tries_ > 1) first_ = std::max(first_, now);
  }
  // An answer arrived that brings no progress. The peer is alive, so the patience starts again; the
  // intervals keep growing.
  void answered(Time now) {
    first_ = now;
    deadline_ = now + interval_;
    tries_ = std::max<std::uint16_t>(tries_, 2);  // it may answer any try
  }
  void stop() { deadline_ = kNever; }
  [[nodiscard]] bool running() const { return deadline_ != kNever; }
  [[nodiscard]] Time deadline() const { return deadline_; }
  [[nodiscard]] bool due(Time now) const { return now >= deadline_; }

  // Call when due. True: send again. False: give up; the clock has stopped. `longest`: up to which
  // the intervals double.
  bool again(Time now, Time longest = kSecond) {
    STP_ASSERT(due(now) && running(), "only a clock that runs and is due tries again");
    if (tries_ >= allowed_ && now - first_ >= patience_) {
      stop();
      return false;
    }
    if (tries_ != kCounted) ++tries_;
    interval_ = std::max(interval_, std::min(interval_ * 2, longest));
    deadline_ = now + interval_;
    return true;
  }
  // Whether the patience is over, even if the request was sent only once.
  [[nodiscard]] bool is_over(Time now) const { return now - first_ >= patience_; }
  // When the request was last sent. Requires a running clock.
  [[nodiscard]] Time sent() const {
    STP_ASSERT(running(), "a clock that runs knows when its request was sent");
    return deadline_ - interval_;
  }
  // The number of tries so far, including the first.
  [[nodiscard]] unsigned tries() const { return tries_; }
  // The round trip that an answer at `now` measures; 0 if it may answer any of several tries.
  // `waited`: until then the request waited to be sent.
  [[nodiscard]] Time measured(Time now, Time waited = 0) const {
    return tries_ == 1 ? now - std::max(first_, waited) : 0;
  }
  // Tells `round_trip` what an answer at `now` shows.
  void measure(RoundTrip& round_trip, Time now) const {
    if (tries_ != 1) return round_trip.at_most(now - first_);
    if (const auto took = measured(now)) round_trip.sample(took);
  }

 private:
  Time first_ = 0, interval_ = 0, patience_ = 0;
  Time deadline_ = kNever;
  static constexpr std::uint16_t kCounted = 0xffff;  // no more are told apart
  std::uint16_t tries_ = 0, allowed_ = kTries;
};

// Finds out whether unanswered requests are lost, or unseen because the peer has not been scheduled
// on a core. Asks with an RS. The RSR is made after the peer's Node has seen everything sent before
// the RS, and says whether the peer's user has read it.
// The caller counts what leaves: `mark` is an increasing number or time.
// protocol: 10.21
class Doubt {
 public:
  // The longest time from the first question that a user who reads late delays repeats.
  static constexpr Time kLongest = 250 * kMillisecond;

  // A request stays unanswered.
  void begin(Time now) {
    if (!is_open()) since_ = now;
  }
  [[nodiscard]] bool is_open() const { return since_ != kNever; }
  // The request is answered or has been repeated.
  void is_over() {
    since_ = kNever;
    pause_ = 0;
  }
  // A question leaves, after everything counted by `mark`.
  void ask(std::uint32_t sync, std::uint64_t mark) {
    STP_ASSERT(mark >= asked_, "a later question is behind more");
    sync_ = sync;
    asked_ = mark;
    asks_ = true;
  }
  [[nodiscard]] bool is_answer(std::uint32_t sync) const { return asks_ && sync == sync_; }
  // The answer arrived. `all_read`: the peer's user has read everything that its Node passed on.
  // False: ask again after pause().
  bool answered(bool all_read, Time now) {
    STP_ASSERT(asks_, "an answer belongs to a question");
    asks_ = false;
    seen_ = asked_;
    seen_at_ = now;
    if (!all_read && is_open() && now - since_ < kLongest) return false;
    read_ = asked_;
    read_at_ = now;
    return true;
  }
  // Back-off: `first`, then doubling.
  Time pause(Time first) {
    pause_ = pause_ == 0 ? first : std::min(2 * pause_, kLongest);
    return pause_;
  }
  // Since when the peer's Node has seen what left with `mark` (kNever: not known), and since when
  // its user has read it.
  [[nodiscard]] Time seen_since(std::uint64_t mark) const {
    return mark <= seen_ ? seen_at_ : kNever;
  }
  [[nodiscard]] Time read_since(std::uint64_t mark) const {
    return mark <= read_ ? read_at_ : kNever;
  }

 private:
  std::uint32_t sync_ = 0;
  bool asks_ = false;
  std::uint64_t asked_ = 0, seen_ = 0, read_ = 0;
  Time since_ = kNever, seen_at_ = kNever, read_at_ = kNever;
  Time pause_ = 0;
};

}  // namespace stp
