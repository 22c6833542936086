// SPDX-License-Identifier: BSD-3-Clause
// Decides when to repeat an unanswered request: not while it may lie unseen at a peer that is not
// scheduled on a core.
#include "stp/base/assert.h"
#include "stp/transfer/sequencer_impl.h"

namespace stp {

// Whether a request is due for a repeat. `gave_up`: it has waited long enough. `queued`: number of
// that request. A request that the Node has not taken yet waits for room, not for its answer.
bool Sequencer::Impl::again(Retry& retry, std::uint64_t queued, Answerer who, Time now,
                            bool& gave_up) {
  STP_ASSERT(queued <= last_number && taken_number <= last_number,
             "what is repeated, and what was taken, has been requested");
  gave_up = false;
  if (retry.running() && queued > taken_number) retry.postpone(now);
  // protocol: 10.20
  if (retry.due(now)) retry.left(departures.of(queued));
  if (!retry.due(now)) {
    due_at(retry.deadline());
    return false;
  }
  if (who != Answerer::kQuestion && !is_lost(queued, who, now)) {
    gave_up = question.running() && question.tries() >= Retry::kTries && retry.is_over(now);
    if (gave_up) retry.stop();
    return false;
  }
  gave_up = !retry.again(now);
  due_at(retry.deadline());
  return !gave_up;
}

// Whether the peer has seen the request `queued`, or would have, and has had time to answer.
// protocol: 10.21
bool Sequencer::Impl::is_lost(std::uint64_t queued, Answerer who, Time now) {
  const auto known = who == Answerer::kNode ? doubt.seen_since(queued) : doubt.read_since(queued);
  if (known == kNever) {
    in_doubt = true;
    doubt.begin(now);
    return false;
  }
  const auto answer_by = known + (who == Answerer::kNode ? interval() : round_trip.timeout());
  if (now < answer_by) due_at(answer_by);
  return now >= answer_by;
}

// Sends one RS for all requests in doubt.
void Sequencer::Impl::ask_whether_seen(Time now) {
  if (!question.running()) {
    question.start(now, round_trip.timeout(), kSeenPatience);
    due_at(question.deadline());
  } else if (bool gave_up = false; !again(question, asked_as, Answerer::kQuestion, now, gave_up)) {
    return;
  }
  const auto sync = ask_state(wire::kNoId, 0, wire::kNoId);
  STP_ASSERT(question.running(), "a question waits for its answer");
  asked_as = last_number;
  doubt.ask(sync, asked_as);
}

// RSR about Slots: the peer's Node has seen everything sent before the RS, and its user has read it
// if its Slots are free.
void Sequencer::Impl::on_slots(const wire::RequestStateResponse& rsr, Time now) {
  if (!doubt.is_answer(rsr.sync)) return;
  if (doubt.answered(rsr.r_slots >= config.remote_slots, now)) question.stop();
  due_at(now);
}

void Sequencer::Impl::no_doubt() {
  question.stop();
  doubt.is_over();
}

}  // namespace stp
