// SPDX-License-Identifier: BSD-3-Clause
// A Node's own questions (RS) about the Slots free at a connection's peer: one at a time waits for
// its answer, and where the answer was "none" the next one waits for a while (section 6).
#pragma once

#include <algorithm>

#include "stp/channel/retry.h"
#include "stp/node/connection/own_asks.h"

namespace stp {

class SlotQuestions {
 public:
  // While the peer has no Slot free it is asked again after kFirstPause, doubling up to the longer
  // one: a peer without credit asks after that at the latest.
  // protocol: 6.7
  static constexpr Time kFirstPause = 200 * kMicrosecond, kLongestPause = 10 * kMillisecond;

  // One leaves, marked with `sync`; the rest as for Retry::start. None is open.
  void ask(std::uint32_t sync, Time now, Time interval, Time patience,
           unsigned tries = Retry::kTries) {
    STP_ASSERT(!is_open(), "one question is open at a time");
    later_ = kNever;
    syncs_.add(sync);
    clock_.start(now, interval, patience, tries);
  }
  void left(Time now) { clock_.left(now); }
  [[nodiscard]] bool is_open() const { return clock_.running(); }
  // Of the last one. There is one.
  [[nodiscard]] std::uint32_t sync() const { return syncs_.newest(); }
  // Whether an answer with that Sync answers one of the Node's own questions; and the open one.
  [[nodiscard]] bool is_own(std::uint32_t sync) const { return syncs_.contains(sync); }
  [[nodiscard]] bool is_open(std::uint32_t sync) const { return is_open() && sync == this->sync(); }
  // The open one is answered. Returns the round trip that this measured; 0: it is not known.
  Time answered(Time now) {
    auto const measured = clock_.measured(now);
    clock_.stop();
    return measured;
  }
  [[nodiscard]] bool due(Time now) const { return clock_.due(now); }
  // When due: false where it is time to give up. None is open then.
  bool again(Time now) { return clock_.again(now); }
  // When the open one is to be repeated; kNever: none is open.
  [[nodiscard]] Time repeat_at() const { return clock_.deadline(); }

  // An answer said that no Slot is free: the next question waits.
  void postpone(Time now) {
    pause_ = pause_ == 0 ? kFirstPause : std::min(pause_ * 2, kLongestPause);
    later_ = now + pause_;
  }
  [[nodiscard]] bool postponed() const { return later_ != kNever; }
  // The next question has waited long enough.
  [[nodiscard]] bool is_time(Time now) const { return now >= later_; }
  // There is credit again: the next pause is a short one.
  void has_credit() { pause_ = 0; }

  // The next time that something is to be done.
  [[nodiscard]] Time deadline() const { return std::min(clock_.deadline(), later_); }
  // No question is wanted any more.
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
