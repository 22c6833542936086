// SPDX-License-Identifier: BSD-3-Clause
// The retry clock of one request: the intervals double up to one second.
#pragma once

#include <algorithm>

#include "stp/base/assert.h"
#include "stp/types.h"

namespace stp {

// protocol: 5.21, 5.22
class Retry {
 public:
  static constexpr unsigned kTries = 8;

  // `tries`: the number of tries, including the first. `patience`: gives up no sooner than this,
  // however short the intervals. On a fast link eight doublings of 200 us pass while a busy peer is
  // merely scheduled out.
  void start(Time now, Time interval, Time patience = 0, unsigned tries = kTries) {
    STP_ASSERT(tries > 0 && interval > 0, "a request is sent once at least, and waited for");
    allowed_ = tries;
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
  // An answer arrived that brings no progress. The peer is alive, so the patience starts again; the
  // intervals keep growing.
  void answered(Time now) {
    first_ = now;
    deadline_ = now + interval_;
    tries_ = std::max(tries_, 2U);  // it may answer any try
  }
  void stop() { deadline_ = kNever; }
  [[nodiscard]] bool running() const { return deadline_ != kNever; }
  [[nodiscard]] Time deadline() const { return deadline_; }
  [[nodiscard]] bool due(Time now) const { return now >= deadline_; }

  // Call when due. True: send again. False: give up; the clock has stopped.
  bool again(Time now) {
    STP_ASSERT(due(now) && running(), "only a clock that runs and is due tries again");
    if (tries_ >= allowed_ && now - first_ >= patience_) {
      stop();
      return false;
    }
    ++tries_;
    interval_ = std::min(interval_ * 2, kSecond);
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

 private:
  Time first_ = 0, interval_ = 0, patience_ = 0;
  Time deadline_ = kNever;
  unsigned tries_ = 0, allowed_ = kTries;
};

}  // namespace stp
