// SPDX-License-Identifier: BSD-3-Clause
// The clock of one request that waits for its answer: doubling intervals up to one second.
#pragma once

#include <algorithm>

#include "stp/base/assert.h"
#include "stp/types.h"

namespace stp {

// protocol: 5.21, 5.22
class Retry {
 public:
  static constexpr unsigned kTries = 8;

  // `tries`: so many in all, the first included. `patience`: give up no sooner than this, however
  // short the intervals. On a fast link eight doublings of 200 us pass while a busy peer is merely
  // scheduled out.
  void start(Time now, Time interval, Time patience = 0, unsigned tries = kTries) {
    STP_ASSERT(tries > 0 && interval > 0, "a request is sent once at least, and waited for");
    allowed_ = tries;
    first_ = now;
    interval_ = interval;
    patience_ = patience;
    tries_ = 1;
    deadline_ = now + interval;
  }
  // Its request has not left yet: the clock begins again.
  void postpone(Time now) {
    first_ = now;
    deadline_ = now + interval_;
  }
  // Its request has left by now.
  void left(Time now) {
    if (running()) deadline_ = std::max(deadline_, now + interval_);
  }
  // An answer has come that brings nothing on. Who answers lives, so the patience begins anew; the
  // intervals go on growing.
  void answered(Time now) {
    first_ = now;
    deadline_ = now + interval_;
    tries_ = std::max(tries_, 2U);  // which try it answers is not known
  }
  void stop() { deadline_ = kNever; }
  [[nodiscard]] bool running() const { return deadline_ != kNever; }
  [[nodiscard]] Time deadline() const { return deadline_; }
  [[nodiscard]] bool due(Time now) const { return now >= deadline_; }

  // When due: true to send again; false when it is time to give up (and the clock has stopped).
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
  // Whether it has waited for as long as it has to, be it that it was sent once.
  [[nodiscard]] bool is_over(Time now) const { return now - first_ >= patience_; }
  // When its request was sent last; it is running.
  [[nodiscard]] Time sent() const {
    STP_ASSERT(running(), "a clock that runs knows when its request was sent");
    return deadline_ - interval_;
  }
  // The tries so far, the first included.
  [[nodiscard]] unsigned tries() const { return tries_; }
  // The round trip that an answer at `now` measured; 0 when it cannot be known which try it
  // answers.
  [[nodiscard]] Time measured(Time now) const { return tries_ == 1 ? now - first_ : 0; }

 private:
  Time first_ = 0, interval_ = 0, patience_ = 0;
  Time deadline_ = kNever;
  unsigned tries_ = 0, allowed_ = kTries;
};

}  // namespace stp
