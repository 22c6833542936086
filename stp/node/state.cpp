// SPDX-License-Identifier: BSD-3-Clause
// Slots and state: RS and RSR (docs/protocol.md, section 6).
#include <algorithm>
#include <utility>

#include "stp/node/impl.h"

namespace stp {
namespace {

// An unanswered RS ends the connection no sooner than this: a busy peer may still be alive.
// protocol: 5.22
constexpr Time kAskPatience = 2 * kSecond;
// An RS about missing DATA does not end the connection; keep-alive does.
constexpr Time kSilencePatience = 5'750 * kMillisecond;
// Keep-alive: after this many unanswered RS in a row the peer is considered gone.
constexpr unsigned kKeepAliveTries = 5;
constexpr Time kKeepAliveInterval = 250 * kMillisecond;

}  // namespace

void Node::Impl::on_request_state(Vc& vc, const wire::Header& h) {
  const auto rs = wire::decode_as<wire::RequestState>(h);
  answer_state(vc, rs.sync, rs.b_num, rs.r_id, rs.i_id);
  const bool to_prove = !vc.passive && rs.sync == vc.local_key && rs.b_num == wire::kNoId &&
                        rs.r_id != wire::kNoId && vc.inbound.transfer(rs.r_id) == nullptr;
  if (!to_prove) return;
  // A repeated question gets a repeated answer: the repeats continue unchanged.
  const bool first = !std::exchange(vc.proof.wanted, true);
  vc.proof.r_id = rs.r_id;
  vc.proof.i_id = rs.i_id;
  vc.proof.asked = vc.heard;
  if (!first) return;
  vc.handshake.start(vc.heard, RoundTrip::kInitial, 0, Proof::kTries);
  set_timer(vc);
}

// protocol: 5.37
void Node::Impl::repeat_proof(Vc& vc) {
  if (!vc.proof.wanted) return;
  if (vc.heard != vc.proof.asked) {
    vc.proof = {};
    return vc.handshake.stop();
  }
  counters.add(Counter::kRetries);
  answer_state(vc, vc.local_key, wire::kNoId, vc.proof.r_id, vc.proof.i_id);
}

// RSR: the number of free Slots now and, if `r_id` names a Transfer, its state.
// protocol: 6.4, 6.13
void Node::Impl::answer_state(Vc& vc, std::uint32_t sync, std::uint32_t b_num, std::uint32_t r_id,
                              std::uint32_t asker_id) {
  wire::RequestStateResponse rsr{.r_slots = static_cast<std::uint16_t>(vc.channel.free_slots()),
                                 .sync = sync,
                                 .b_num = b_num,
                                 .i_id = wire::kNoId};
  std::uint16_t flags = 0;
  if (r_id != wire::kNoId) {
    rsr.r_id = r_id;
    if (const auto* const transfer = vc.inbound.transfer(r_id)) {
      rsr.b_seq = transfer->b_seq;
      rsr.i_id = transfer->i_id;
      if (!transfer->has(b_num)) rsr.b_num = wire::kNoId;  // that Block is incomplete
    } else {
      // protocol: 6.14
      flags = wire::flag::kReject;  // no such Transfer here
      rsr.i_id = asker_id;
    }
  }
  answer(vc.peer_mac, header_for(vc, rsr, flags), vc.endpoint->config.checksum);
  if (rsr.r_slots == 0) vc.no_slot_until = seen + SlotQuestions::kLongestPause;
}

// protocol: 6.10
void Node::Impl::on_state_response(Vc& vc, const wire::Frame& frame, Time now) {
  const auto rsr = wire::decode_as<wire::RequestStateResponse>(frame.header);
  const bool had_credit = vc.credit.available();
  const bool news = vc.credit.answered(rsr.sync, rsr.r_slots);
  if (news && vc.credit.available() && !had_credit) {
    vc.questions.has_credit();
    pacing.has_credit(vc);
    turns.enter(vc);
  }
  const bool ours = rsr.i_id == wire::kNoId && vc.questions.is_own(rsr.sync);
  const bool own = ours && vc.questions.is_open(rsr.sync);
  if (own) {
    if (const auto measured = vc.questions.answered(now)) vc.round_trip.sample(measured);
    doubt_answered(vc, rsr.sync, rsr.r_slots, now);
  }
  if (own || news) ask_again_later(vc, now);
  if (own) return set_timer(vc);
  // The fields of the RS that came with the answer to its RC.
  // protocol: 5.37
  const bool proof = vc.passive && rsr.sync == vc.peer_key && frame.header.has(wire::flag::kReject);
  if (ours || proof || vc.user_closed) return;
  if (!deliver(vc, frame.src, frame.header, frame.option, NodeChannel::Place::kReserve))
    drop(DropReason::kStateLost);
}

// Applies whoever asked. After an answer without credit nothing else is sent that would bring an
// answer, and the request that waits for a Slot (a repeated CTS, for example) may not be the
// user's.
// protocol: 6.7
void Node::Impl::ask_again_later(Vc& vc, Time now) {
  if (vc.credit.available() || vc.questions.is_open() || vc.questions.postponed()) return;
  vc.questions.postpone(now);
  set_timer(vc);
}

void Node::Impl::ask_slots(Vc& vc, Ask why, Time now) {
  if (vc.questions.is_open()) return;
  const auto sync = random.next();
  const auto timeout = vc.round_trip.timeout();
  if (why == Ask::kKeepAlive)
    vc.questions.ask(sync, now, std::max(timeout, kKeepAliveInterval), 0, kKeepAliveTries);
  else
    vc.questions.ask(sync, now, timeout, why == Ask::kCredit ? kAskPatience : kSilencePatience);
  departures.leaves(vc, NodeDepartures::kAskClock);
  // The RS overtakes the STUs of a Block being sent.
  const bool overtakes = vc.sending.active && vc.sending.entry.header.op() == wire::Op::kData;
  vc.credit.asked(sync, overtakes ? 1 : 0);
  send_slot_question(vc);
  set_timer(vc);
}

void Node::Impl::send_slot_question(Vc& vc) {
  repeat_proof(vc);
  const wire::RequestState rs{
      .sync = vc.questions.sync(), .b_num = wire::kNoId, .r_id = wire::kNoId};
  answer(vc.peer_mac, header_for(vc, rs), vc.endpoint->config.checksum);
}

// Whether an operation that needs a Slot may go. If not, asks the peer; the answer makes the
// connection ready again.
bool Node::Impl::has_credit(Vc& vc, Time now) {
  if (vc.credit.available()) return true;
  counters.add(Counter::kSlotWaits);
  if (!vc.questions.postponed()) ask_slots(vc, Ask::kCredit, now);
  return false;
}

void Node::Impl::spend_slot(Vc& vc, Time now) {
  vc.credit.spend();
  if (vc.credit.should_ask() && !vc.questions.postponed()) ask_slots(vc, Ask::kCredit, now);
}

}  // namespace stp
