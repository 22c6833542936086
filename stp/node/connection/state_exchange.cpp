// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/state_exchange.h"

#include <algorithm>
#include <utility>

#include "stp/node/connection/strangers.h"
#include "stp/node/wake_ups.h"

namespace stp {
namespace {

// An unanswered RS ends the connection no sooner than this: a busy peer may still be alive.
// protocol: 5.22
constexpr Time kAskPatience = 4 * kSecond;
// Keep-alive: after this many unanswered RS in a row the peer is considered gone.
constexpr unsigned kKeepAliveTries = 5;
constexpr Time kKeepAliveInterval = SlotQuestions::kLongestInterval;

}  // namespace

void StateExchange::on_request(Vc& vc, const wire::Header& h) {
  const auto rs = wire::decode_as<wire::RequestState>(h);
  answer(vc, rs.sync, rs.b_num, rs.r_id, rs.i_id);
  const bool to_prove = !vc.passive && rs.sync == vc.local_key && rs.b_num == wire::kNoId &&
                        rs.r_id != wire::kNoId && vc.inbound.transfer(rs.r_id) == nullptr;
  if (!to_prove) return;
  // Of several RCs that the peer may have answered, the CA that came has told which one counts.
  // protocol: 13.20
  const auto sizes = use_.common.config.padded_requests
                         ? (rs.i_id & ~std::uint32_t{0xff}) | (vc.local_max_stu - wire::kMinMaxStu)
                         : rs.i_id;
  begin_proof(vc, rs.r_id, sizes, RoundTrip::kInitial);
}

// An RSR with these words has left. A repeated question gets a repeated answer: the repeats
// continue unchanged.
void StateExchange::begin_proof(Vc& vc, std::uint32_t r_id, std::uint32_t i_id, Time interval) {
  auto& proof = vc.proof;
  const bool first = !std::exchange(proof.wanted_, true);
  proof.r_id_ = r_id;
  proof.i_id_ = i_id;
  proof.asked_ = vc.heard;
  if (!first) return;
  proof.clock_.start(vc.heard, interval, 0, Proof::kTries);
  use_.timers.update(vc);
}

void StateExchange::prove(Vc& vc, Time now) {
  const auto sizes = Strangers::sizes({.i_slots = static_cast<std::uint16_t>(vc.channel.slots()),
                                       .i_bufsize = vc.endpoint->config.bufsize,
                                       .i_max_stu = vc.local_max_stu});
  // protocol: 5.38
  const bool in_words = vc.peer_uport != wire::kNoId;
  if (in_words) answer(vc, vc.local_key, wire::kNoId, vc.peer_uport, sizes);
  ask(vc, Ask::kState, now);
  if (in_words)
    begin_proof(vc, vc.peer_uport, sizes, std::max(vc.round_trip.timeout(), RoundTrip::kInitial));
}

// protocol: 5.37
void StateExchange::repeat_proof(Vc& vc) {
  const auto& proof = vc.proof;
  if (!proof.wanted_) return;
  if (vc.heard != proof.asked_) return vc.proof.stop();
  use_.common.counters.add(Counter::kRetries);
  answer(vc, vc.local_key, wire::kNoId, proof.r_id_, proof.i_id_);
}

// protocol: 6.4, 6.13
void StateExchange::answer(Vc& vc, std::uint32_t sync, std::uint32_t b_num, std::uint32_t r_id,
                           std::uint32_t asker_id) {
  wire::RequestStateResponse rsr{
      .r_slots = static_cast<std::uint16_t>(vc.channel.known_free_slots()),
      .sync = sync,
      .b_num = b_num,
      .i_id = wire::kNoId};
  std::uint16_t flags = 0;
  bool completes = false;
  if (r_id != wire::kNoId) {
    rsr.r_id = r_id;
    if (const auto* const transfer = vc.inbound.transfer(r_id)) {
      rsr.b_seq = transfer->b_seq;
      rsr.i_id = transfer->i_id;
      completes = transfer->finished();
      if (!transfer->has(b_num)) rsr.b_num = wire::kNoId;  // that Block is incomplete
    } else {
      // protocol: 6.14
      flags = wire::flag::kReject;  // no such Transfer here
      rsr.i_id = asker_id;
    }
  }
  use_.common.answer(vc, vc.header_for(rsr, flags), {}, completes);
  if (rsr.r_slots == 0) vc.recovery.has_no_slot(use_.common.seen);
}

// protocol: 6.10
void StateExchange::on_response(Vc& vc, const wire::Frame& frame, Time now) {
  const auto rsr = wire::decode_as<wire::RequestStateResponse>(frame.header);
  if (rsr.i_id == wire::kNoId && use_.bounds.answered(vc, rsr.sync, now)) return;
  const bool had_credit = vc.credit.available();
  const bool news = vc.credit.answered(rsr.sync, rsr.r_slots);
  if (news && vc.credit.available() && !had_credit) {
    vc.questions.has_credit();
    use_.pacing.has_credit(vc);
    use_.turns.enter(vc);
  }
  const bool ours = rsr.i_id == wire::kNoId && vc.questions.is_own(rsr.sync);
  const bool own = ours && vc.questions.is_open(rsr.sync);
  if (own) {
    vc.proof.stop();  // the peer has the connection
    vc.questions.answered(vc.round_trip, now);
    vc.recovery.answered(rsr.sync, rsr.r_slots >= vc.peer_slots, vc.round_trip, now);
  }
  if (own || news) ask_later(vc, now);
  if (own) return use_.timers.update(vc);
  // The fields of the RS that came with the answer to its RC.
  // protocol: 5.37
  const bool proof = frame.header.has(wire::flag::kReject) && rsr.sync == vc.peer_key && vc.passive;
  if (ours || proof || vc.user_closed) return;
  if (!deliver(vc, use_.wake_ups, frame.src, frame.header, frame.option,
               NodeChannel::Place::kReserve))
    use_.common.drop(DropReason::kStateLost);
}

// Applies whoever asked. After an answer without credit nothing else is sent that would bring an
// answer, and the request that waits for a Slot (a repeated CTS, for example) may not be the
// user's.
// protocol: 6.7
void StateExchange::ask_later(Vc& vc, Time now) {
  if (vc.credit.available() || vc.questions.is_open() || vc.questions.postponed()) return;
  vc.questions.postpone(now);
  use_.timers.update(vc);
}

void StateExchange::ask(Vc& vc, Ask why, Time now) {
  if (vc.questions.is_open()) return;
  const auto sync = use_.common.random.next();
  const auto timeout = vc.round_trip.timeout();
  if (why == Ask::kKeepAlive)
    vc.questions.ask(sync, now, std::max(timeout, kKeepAliveInterval), 0, kKeepAliveTries);
  else
    vc.questions.ask(sync, now, timeout, kAskPatience);
  use_.departures.leaves(vc, NodeDepartures::kAskClock);
  // The RS overtakes the STUs of a Block being sent.
  const bool overtakes = vc.is_sending && vc.sending.entry.header.op() == wire::Op::kData;
  vc.credit.asked(sync, overtakes ? 1 : 0);
  send_question(vc);
  use_.timers.update(vc);
}

void StateExchange::send_question(Vc& vc) {
  repeat_proof(vc);
  const wire::RequestState rs{
      .sync = vc.questions.sync(), .b_num = wire::kNoId, .r_id = wire::kNoId};
  use_.common.answer(vc, vc.header_for(rs));
}

bool StateExchange::has_credit(Vc& vc, Time now) {
  if (vc.credit.available()) return true;
  use_.common.counters.add(Counter::kSlotWaits);
  if (!vc.questions.postponed()) ask(vc, Ask::kState, now);
  return false;
}

bool StateExchange::repeat(Vc& vc, Time now) {
  if (vc.proof.clock_.due(now)) {
    vc.proof.clock_.again(now);
    repeat_proof(vc);
  }
  if (!vc.questions.due(now)) return true;
  // Any frame from the peer shows that it is alive: only silence uses up tries.
  // protocol: 5.23, 5.24
  const bool silent = now - vc.heard >= VcTimers::kKeepAlive;
  if (!vc.questions.again(now) && silent) return false;
  if (vc.questions.is_open()) {
    use_.common.counters.add(Counter::kRetries);
    use_.departures.leaves(vc, NodeDepartures::kAskClock);
    send_question(vc);
  } else {
    ask(vc, Ask::kState, now);
  }
  return true;
}

void StateExchange::ask_when_due(Vc& vc, Time now) {
  if (vc.questions.is_time(now)) ask(vc, Ask::kState, now);
  if (VcTimers::keeps_alive(vc) && now >= vc.heard + VcTimers::kKeepAlive)
    ask(vc, Ask::kKeepAlive, now);
}

}  // namespace stp
