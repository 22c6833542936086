// SPDX-License-Identifier: BSD-3-Clause
// Decides when to repeat an unanswered request: not while it may lie unseen at a peer that is not
// scheduled on a core. Owns the round-trip time of the connection, and the question (an RS) that
// finds out whether the peer has seen what it does not answer. However many requests are in doubt,
// one question is open.
#pragma once

#include <algorithm>
#include <cstdint>

#include "stp/channel/retry.h"
#include "stp/transfer/clock.h"
#include "stp/transfer/outbox.h"

namespace stp {

// A request until it is answered.
struct Awaited {
  explicit Awaited(Alarm of) : alarm(of) {}

  [[no_unique_address]] Retry retry;
  Alarm alarm;               // of the mechanism that waits for the answer; in the room behind it
  std::uint64_t number = 0;  // of the request as it was sent last: Outbox::last_number()
};
static_assert(sizeof(Awaited) == 48);

class Repeats {
 public:
  // `remote_slots`: the peer's, all of them; 0: not known.
  Repeats(std::uint32_t remote_slots, Clock& clock, Outbox& outbox)
      : clock_(clock), remote_slots_(remote_slots), outbox_(outbox) {}

  // Starts the clock of a request. It gives up no sooner than after `patience`.
  void start(Awaited& awaited, Time patience) { start(awaited, interval(), patience); }
  void start(Awaited& awaited, Time interval, Time patience) {
    awaited.retry.start(clock_.now(), interval, patience);
    clock_.due_at(awaited.alarm, awaited.retry.deadline());
  }
  // An answer that brings no progress.
  void answered(Awaited& awaited) {
    awaited.retry.answered(clock_.now());
    clock_.due_at(awaited.alarm, awaited.retry.deadline());
  }
  // An answer has come now. Call only if no other request may have caused it.
  void measure(const Awaited& awaited);

  // Who must answer: the peer's Node or its user. kQuestion: a question that is repeated until
  // answered.
  enum class Answerer : std::uint8_t { kNode, kUser, kQuestion };
  enum class Next : std::uint8_t { kWait, kSend, kGiveUp };
  // What is to be done about a request now.
  Next next(Awaited& awaited, Answerer who);

  // Call before and after a round of next(): for everything that is unanswered unless idle(), else
  // for what is due.
  void begin_round() { in_doubt_ = false; }
  void end_round();
  // RSR about Slots. Ignores one that answers no question of this mechanism.
  void on_slots(const wire::RequestStateResponse& rsr);
  // Whether there is no doubt, so that this mechanism waits for nothing.
  [[nodiscard]] bool idle() const { return !question_.retry.running() && !in_doubt_; }

 private:
  [[nodiscard]] Time interval() const {
    return std::max<Time>(4 * round_trip_.smoothed(), kMillisecond);
  }
  bool is_lost(const Awaited& awaited, Answerer who);
  void ask_whether_seen();

  Clock& clock_;  // each request needs this and the beginning of what follows
  RoundTrip round_trip_;
  const std::uint32_t remote_slots_;
  bool in_doubt_ = false;  // a request is unanswered; the peer may or may not have seen it
  Outbox& outbox_;
  Doubt doubt_;
  Awaited question_{Alarm::kRepeats};  // the RS about unanswered requests, until its RSR
};

}  // namespace stp
