// SPDX-License-Identifier: BSD-3-Clause
// Slots and state: RS and RSR (docs/protocol.md, section 6).
#include <algorithm>

#include "stp/node/impl.h"

namespace stp {
namespace {

// While the peer has no Slot free it is asked again after this, doubling up to the longer one.
// protocol: 6.7
constexpr Time kFirstPause = 200 * kMicrosecond;
// An unanswered RS ends the connection no sooner than this: a busy peer is not a dead one.
// protocol: 5.22
constexpr Time kAskPatience = 2 * kSecond;
// One that asks why nothing comes leaves it at what keep-alive would find.
constexpr Time kSilencePatience = 5'750 * kMillisecond;
// Keep-alive: so many RS unanswered in a row, and the peer is gone.
constexpr unsigned kKeepAliveTries = 5;
constexpr Time kKeepAliveInterval = 250 * kMillisecond;

}  // namespace

void Node::Impl::on_request_state(Vc& vc, const wire::Header& h) {
  answer_state(vc, h.sync, h.b_num, h.d_id, h.s_id);
}

// RSR: the free Slots of this moment and, where `r_id` names a Transfer, its state.
// protocol: 6.4, 6.13
void Node::Impl::answer_state(Vc& vc, std::uint32_t sync, std::uint32_t b_num, std::uint32_t r_id,
                              std::uint32_t asker_id) {
  auto h = header_for(vc, wire::Op::kRequestStateResponse);
  h.param = static_cast<std::uint16_t>(vc.channel.free_slots());
  h.sync = sync;
  h.b_num = b_num;
  h.d_id = wire::kNoId;
  if (r_id != wire::kNoId) {
    h.s_id = r_id;
    if (auto const* const transfer = vc.inbound.transfer(r_id)) {
      h.offset = transfer->b_seq;
      h.d_id = transfer->i_id;
      if (!transfer->has(b_num)) h.b_num = wire::kNoId;  // that very Block is not complete
    } else {
      // protocol: 6.14
      h.op_flags |= wire::flag::kReject;  // no such Transfer here
      h.d_id = asker_id;
    }
  }
  answer(vc.peer_mac, h, vc.endpoint->config.checksum);
  if (h.param == 0) vc.no_slot_until = seen + kLongestSlotPause;
}

// protocol: 6.10
void Node::Impl::on_state_response(Vc& vc, const wire::Frame& frame, Time now) {
  auto const& h = frame.header;
  bool const had_credit = vc.credit.available();
  bool const news = vc.credit.answered(h.sync, h.param);
  if (news && vc.credit.available() && !had_credit) {
    vc.ask_pause = 0;
    if (vc.held > 0) {
      held.unpark(vc.id);
      granted.look_again = true;
    }
    make_ready(vc);
  }
  bool const ours = h.d_id == wire::kNoId && vc.own_asks.contains(h.sync);
  bool const own = ours && vc.ask.running() && h.sync == vc.own_asks.newest();
  if (own) {
    if (auto const measured = vc.ask.measured(now)) vc.round_trip.sample(measured);
    vc.ask.stop();
    doubt_answered(vc, h.sync, h.param, now);
  }
  if (own || news) ask_again_later(vc, now);
  if (own) return set_timer(vc);
  // What the question said that came with the answer to its RC.
  // protocol: 5.37
  bool const proof = vc.passive && h.sync == vc.peer_key && h.has(wire::flag::kReject);
  if (ours || proof || vc.user_closed) return;
  if (!deliver(vc, frame.src, h, frame.option, NodeChannel::Place::kReserve))
    counters.add(Counter::kStateLost);
}

// Whoever asked: after an answer of no credit nothing is sent that would bring another answer, and
// what waits for a Slot (a repeated CTS, say) may not be the user's.
// protocol: 6.7
void Node::Impl::ask_again_later(Vc& vc, Time now) {
  if (vc.credit.available() || vc.ask.running() || vc.ask_again != kNever) return;
  vc.ask_pause = vc.ask_pause == 0 ? kFirstPause : std::min(vc.ask_pause * 2, kLongestSlotPause);
  vc.ask_again = now + vc.ask_pause;
  set_timer(vc);
}

void Node::Impl::ask_slots(Vc& vc, Ask why, Time now) {
  if (vc.ask.running()) return;
  vc.ask_again = kNever;
  auto const sync = random.next();
  vc.own_asks.add(sync);
  if (why == Ask::kKeepAlive)
    vc.ask.start(now, std::max(vc.round_trip.timeout(), kKeepAliveInterval), 0, kKeepAliveTries);
  else
    vc.ask.start(now, vc.round_trip.timeout(),
                 why == Ask::kCredit ? kAskPatience : kSilencePatience);
  leaves(vc, kAskClock);
  // The RS overtakes the STUs of a Block that is being sent.
  bool const overtakes = vc.sending.active && vc.sending.entry.header.op() == wire::Op::kData;
  vc.credit.asked(sync, overtakes ? 1 : 0);
  auto h = header_for(vc, wire::Op::kRequestState);
  h.sync = sync;
  h.b_num = wire::kNoId;
  h.d_id = wire::kNoId;
  answer(vc.peer_mac, h, vc.endpoint->config.checksum);
  set_timer(vc);
}

// Whether an operation that needs a Slot may go. If not, the peer is asked; its answer makes the
// connection ready again.
bool Node::Impl::has_credit(Vc& vc, Time now) {
  if (vc.credit.available()) return true;
  counters.add(Counter::kSlotWaits);
  if (vc.ask_again == kNever) ask_slots(vc, Ask::kCredit, now);
  return false;
}

void Node::Impl::spend_slot(Vc& vc, Time now) {
  vc.credit.spend();
  if (vc.credit.should_ask() && vc.ask_again == kNever) ask_slots(vc, Ask::kCredit, now);
}

}  // namespace stp
