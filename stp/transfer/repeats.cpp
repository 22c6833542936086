// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/repeats.h"

#include "stp/base/assert.h"
#include "stp/transfer/clock.h"

namespace stp {

void Repeats::measure(const Awaited& awaited) {
  const auto measured =
      awaited.retry.measured(clock_.now(), outbox_.departures().before(awaited.number));
  if (measured != 0) round_trip_.sample(measured);
}

Repeats::Next Repeats::next(Awaited& awaited, Answerer who) {
  const auto now = clock_.now();
  auto& [retry, alarm, number] = awaited;
  STP_ASSERT(number <= outbox_.last_number() && outbox_.taken_number() <= outbox_.last_number(),
             "what is repeated, and what was taken, has been requested");
  // A request that the Node has not taken yet waits for room, not for its answer.
  if (retry.running() && number > outbox_.taken_number()) retry.postpone(now);
  // protocol: 10.20
  if (retry.due(now)) retry.left(outbox_.departures().of(number));
  if (!retry.due(now)) {
    clock_.due_at(alarm, retry.deadline());
    return Next::kWait;
  }
  if (who != Answerer::kQuestion && !is_lost(awaited, who)) {
    const auto& asked = question_.retry;
    const bool gave_up = asked.running() && asked.tries() >= Retry::kTries && retry.is_over(now);
    if (gave_up) retry.stop();
    return gave_up ? Next::kGiveUp : Next::kWait;
  }
  const bool again = retry.again(now);
  clock_.due_at(alarm, retry.deadline());
  return again ? Next::kSend : Next::kGiveUp;
}

// Whether the peer has seen the request, or would have, and has had time to answer.
// protocol: 10.21
bool Repeats::is_lost(const Awaited& awaited, Answerer who) {
  const auto now = clock_.now();
  const bool node = who == Answerer::kNode;
  const auto known = node ? doubt_.seen_since(awaited.number) : doubt_.read_since(awaited.number);
  if (known == kNever) {
    in_doubt_ = true;
    doubt_.begin(now);
    return false;
  }
  const auto answer_by = known + (node ? interval() : round_trip_.timeout());
  if (now < answer_by) clock_.due_at(awaited.alarm, answer_by);
  return now >= answer_by;
}

void Repeats::end_round() {
  if (in_doubt_) return ask_whether_seen();
  question_.retry.stop();
  clock_.stop(Alarm::kRepeats);
  doubt_.is_over();
}

// Sends one RS for all requests in doubt.
void Repeats::ask_whether_seen() {
  if (!question_.retry.running())
    start(question_, round_trip_.timeout(), kSeenPatience);
  else if (next(question_, Answerer::kQuestion) != Next::kSend)
    return;
  const auto sync = outbox_.ask_state(wire::kNoId, 0, wire::kNoId);
  STP_ASSERT(question_.retry.running(), "a question waits for its answer");
  question_.number = outbox_.last_number();
  doubt_.ask(sync, question_.number);
}

// The peer's Node has seen everything sent before the RS, and its user has read it if its Slots are
// free.
void Repeats::on_slots(const wire::RequestStateResponse& rsr) {
  if (!doubt_.is_answer(rsr.sync)) return;
  if (doubt_.answered(rsr.r_slots >= remote_slots_, clock_.now())) question_.retry.stop();
  clock_.due_at(Alarm::kRepeats, clock_.now());
}

}  // namespace stp
