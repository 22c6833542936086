// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/vc_endings.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "stp/node/shards.h"

namespace stp {

namespace {

// The listener leaves further RCs unanswered, and their repeats come at ever longer intervals:
// without hurry() younger RCs would take every free place. The shards of an address divide them.
constexpr unsigned kMaxUnanswered = 16;
static_assert(Shards::kMost <= kMaxUnanswered, "each shard may ask");
// An RC is sent so often before it is sent for shorter STUs, too; and so often before a host that
// has given no sign gets short frames only.
constexpr unsigned kLongestOnly = 2, kPadded = 3;
// A waiting RC is given up no sooner than one that has left.
constexpr Time kTurnPatience = ((1U << Retry::kTries) - 1) * RoundTrip::kInitial;

}  // namespace

Dials::Dials(const Uses& uses)
    : use_(uses),
      most_(kMaxUnanswered /
            (uses.common.config.shards != nullptr ? uses.common.config.shards->count() : 1)) {}

void Dials::begin(Vc& vc, Time now) {
  auto& to = dialing_[listener_of(vc)];
  if (to.sent.size() == most_) {
    const auto patience = vc.endpoint->config.connect_patience;
    vc.dial.state_ = DialState::State::kWaits;
    to.waiting.insert(vc.id);
    vc.handshake.start(now, std::max(patience, kTurnPatience), 0, 1);
    return use_.timers.update(vc);
  }
  to.sent.insert(vc.id);
  vc.dial.state_ = DialState::State::kSent;
  start(vc, now);
}

void Dials::start(Vc& vc, Time now) {
  const auto patience = vc.endpoint->config.connect_patience;
  const auto waited = now - vc.heard;
  // protocol: 5.31
  vc.handshake.start(now, RoundTrip::kInitial, patience - std::min(patience, waited));
  use_.departures.leaves(vc, NodeDepartures::kHandshakeClock);
  send(vc, now);
  use_.timers.update(vc);
}

void Dials::end(Vc& vc, Time now) {
  const auto was = std::exchange(vc.dial.state_, DialState::State::kNone);
  if (was == DialState::State::kNone) return;
  const auto at = dialing_.find(listener_of(vc));
  STP_ASSERT(at != dialing_.end(), "an RC that has begun is one of its listener's");
  auto& to = at->second;
  if (was == DialState::State::kWaits) {
    to.waiting.erase(vc.id);
    return;
  }
  to.sent.erase(vc.id);
  if (!to.sent.empty()) hurry(to, now);
  if (to.waiting.empty()) {
    if (to.sent.empty()) dialing_.erase(at);
    return;
  }
  auto& next = *use_.vcs.find(to.waiting.extract(to.waiting.begin()).value());
  begin(next, now);
}

// An RC was answered or has ended: the listener may have a place for the oldest unanswered one.
void Dials::hurry(Dialing& to, Time now) {
  auto& oldest = *use_.vcs.find(*to.sent.begin());
  const auto sent = std::max(oldest.handshake.sent(), to.hurried);
  if (now < sent + RoundTrip::kInitial) return;
  to.hurried = now;
  send(oldest, now);
}

// protocol: 13.20
void Dials::reached(Vc& vc, unsigned max_stu, Time now) {
  const auto longest = std::min(vc.endpoint->config.max_stu, use_.common.config.max_stu);
  vc.local_max_stu = max_stu;
  if (max_stu == longest) {
    // A user's own limit tells nothing about longer ones.
    if (max_stu == use_.common.config.max_stu) short_ways_.remove(vc.peer_mac);
    return;
  }
  use_.common.counters.add(Counter::kWaysShort);
  short_ways_.add(vc.peer_mac, now);
}

bool Dials::is_cut_again(Vc& vc) {
  if (only_asks(vc)) return true;  // three requests had all the time to be answered
  auto& before = vc.dial.cut_at_;
  if (before == 0) before = static_cast<std::uint16_t>(vc.handshake.tries());
  return vc.handshake.tries() > before + 1U || vc.handshake.tries() >= Retry::kTries;
}

void Dials::begin_shorter(Vc& vc, unsigned max_stu, Time now) {
  STP_ASSERT(vc.dial.state_ == DialState::State::kSent, "an RC that is answered has been sent");
  vc.dial.cut_at_ = 0;
  vc.dial.is_there_ = true;
  vc.local_max_stu = max_stu;
  start(vc, now);
}

Dials::ListenerName Dials::listener_of(const Vc& vc) {
  return {vc.endpoint->owner_id, vc.peer_mac, vc.peer_uport};
}

// What is longer than the way carries is lost. So it is sent for each length, the longest first:
// the first answer is that to the longest one that arrived. Loss by chance should not make STUs
// shorter: twice it is sent for the longest ones only. The one without padding is for older
// stations. Many dials at once leave room for other answers.
// protocol: 13.20
void Dials::send(const Vc& vc, Time now) {
  const bool pads = use_.common.config.padded_requests && vc.peer_mac != use_.common.config.mac;
  if (!pads) return send(vc, vc.local_max_stu, {});
  const auto tries = vc.handshake.tries();
  if (only_asks(vc)) {
    send(vc, vc.local_max_stu, {.known = true});
    return ask(vc);
  }
  const bool search = tries > kLongestOnly || short_ways_.has(vc.peer_mac, now);
  const bool all = search && !use_.common.answers.is_half_full();
  const auto last = all ? wire::kMinMaxStu : vc.local_max_stu;
  for (auto stu = vc.local_max_stu; stu >= last; --stu)
    send(vc, stu,
         {.known = true,
          .option = vc.option.has_value(),
          .proves = true,
          .heeds = use_.common.heeds_marks() && use_.common.is_shared(vc.peer_mac),
          .stu = stu});
  if (tries > 1) send(vc, vc.local_max_stu, {.known = true});
}

// All lengths, again and again, are much for a host that is not there: 100 KB in 2 s at MTU 9000.
// protocol: 13.20
bool Dials::only_asks(const Vc& vc) {
  return vc.handshake.tries() > kPadded && !vc.dial.is_there_;
}

// Any Node answers this response to nothing, from a Port that it does not have, by an RD without a
// Key. If it has that Port, it says nothing: so each one names another.
// protocol: 13.20, 13.21
void Dials::ask(const Vc& vc) {
  const wire::RequestStateResponse rsr{
      .r_slots = 0, .sync = vc.local_key, .b_num = wire::kNoId, .i_id = wire::kNoId};
  auto h = wire::to_header(rsr, wire::flag::kReject);
  h.s_port = vc.local_port;
  h.d_port = static_cast<std::uint16_t>(wire::kMaxPort - vc.handshake.tries());
  use_.common.answer(vc, h, {});
}

void Dials::is_there(Vc& vc, Time now) {
  if (vc.dial.state_ != DialState::State::kSent || !only_asks(vc)) return;
  vc.dial.is_there_ = true;
  send(vc, now);
}

// protocol: 3.14
void Dials::send(const Vc& vc, unsigned max_stu, wire::Padding padding) {
  const wire::RequestConnection rc{.i_slots = static_cast<std::uint16_t>(vc.channel.slots()),
                                   .i_bufsize = vc.endpoint->config.bufsize,
                                   .i_key = vc.local_key,
                                   .i_max_stu = max_stu,
                                   .r_uport = vc.peer_uport};
  auto h = wire::to_header(rc);
  h.s_port = vc.local_port;
  h.b_num = padding.word();
  use_.common.answer(vc, h, vc.option);
}

void Tidying::later(InboundRemains ended) {
  ended.dismantle(kAtOnce);
  if (!ended.empty()) remains_.push_back(std::move(ended));
}

void Tidying::turn() {
  auto left = kInATurn;
  left -= memory_.tidy(left);
  left -= pacing_.tidy(left);
  while (left > 0 && !remains_.empty()) {
    left -= remains_.front().dismantle(left);
    if (remains_.front().empty()) remains_.pop_front();
  }
  while (left > 0 && !vcs_.empty()) {
    auto& vc = vcs_.pop_front();
    left -= vc.inbound.tidy(left);
    later(vc);
  }
}

namespace {

// RD is repeated for at least this long before the peer is considered dead.
constexpr Time kClosePatience = kSecond;

// The end of a VC has no RS to ask about it: RD and DA are repeated as slowly as RC.
// protocol: 5.21
Time unasked_interval(const Vc& vc) {
  return std::max(vc.round_trip.timeout(), RoundTrip::kInitial);
}

}  // namespace

void VcEndings::close(Vc& vc, bool at_once, Time now, const OptionPayload& option) {
  STP_ASSERT(vc.state != VcState::kAsked, "who decides by closing refuses");
  vc.user_closed = true;
  leave_backlog(vc);
  switch (vc.state.state()) {
    case VcState::kPeerClosed:
    case VcState::kFailed:
      return forget(vc, now);
    case VcState::kConnecting:
      return begin(vc, now);
    case VcState::kOpen:
      // protocol: 5.32
      vc.option = option;
      if (!at_once) return drain(vc, now);
      if (!vc.waits_for_proof) return begin(vc, now);
      stop_traffic(vc);  // the RD waits, too
      return drain(vc, now);
    case VcState::kAsked:
    case VcState::kClosing:
    case VcState::kBothClosing:
    case VcState::kPeerClosing:
      return;  // already disconnecting
  }
}

// Sends the queued requests first. RD follows when none is left, or when they make no progress.
// protocol: 5.17, 5.43
void VcEndings::drain(Vc& vc, Time now) {
  vc.draining.by_ = now + kDrainPatience;
  use_.turns.enter(vc);
  use_.timers.update(vc);
}

// protocol: 5.2
void VcEndings::begin(Vc& vc, Time now) {
  if (vc.connectionless()) return forget(vc, now);  // no peer to tell
  vc.state.must(VcEvent::kClose);
  // Not answered yet: a CA that still comes is answered like that of an unknown connection.
  if (vc.state == kVcGone) return forget(vc, now);
  stop_traffic(vc);
  vc.handshake.start(now, unasked_interval(vc), kClosePatience);
  use_.departures.leaves(vc, NodeDepartures::kHandshakeClock);
  send(vc, wire::Op::kRequestDisconnect);
  use_.timers.update(vc);
}

// Ends data both ways: grants and queued requests are void.
void VcEndings::stop_traffic(Vc& vc) {
  use_.tidying.later(vc.inbound.clear());
  vc.leave<IsUntidy>();
  vc.is_sending = false;
  vc.permitted.clear();
  vc.one_sided.reset();
  vc.recovery.stop();
  use_.pacing.drop(vc);
  vc.channel.refuse_all();
  if (vc.attached == 0) vc.channel.complete(vc.channel.taken());
  vc.questions.stop();
  vc.proof.stop();
  vc.decision.stop();
  vc.draining.by_ = kNever;
  use_.memory.abandon(vc.mxs);
  use_.wake_ups.touch(vc);
}

void VcEndings::fail(Vc& vc, VcEvent why, int error, Time now) {
  vc.state.must(why);
  vc.error = error;
  use_.dials.end(vc, now);
  count(vc, Counter::kVcFailed);
  vc.handshake.stop();
  stop_traffic(vc);
  vc.channel.set_state(ChannelState::kFailed, error);
  use_.wake_ups.touch(vc);
  const bool unseen = leave_backlog(vc);
  if (vc.user_closed || unseen) return forget(vc, now);
  use_.common.event(Event::Kind::kVcOver, vc.id, vc.cookie);
  use_.timers.update(vc);
}

void VcEndings::let_ask_again(Vc& vc, Time now) {
  use_.peers.end(vc, false, now);
  vc.peer_key = 0;  // it names no requester any more
}

void VcEndings::count(Vc& vc, Counter how) {
  if (vc.peer_key == 0 || vc.end_counted) return;
  vc.end_counted = true;
  use_.common.counters.add(how);
}

void VcEndings::forget(Vc& vc, Time now, bool remember) {
  use_.dials.end(vc, now);
  stop_traffic(vc);
  count(vc, Counter::kVcClosed);
  use_.peers.end(vc, remember, now);
  use_.timers.remove(vc);
  Turns::leave(vc);
  vc.leave<IsTouched>();
  vc.leave<IsWatched>();
  leave_backlog(vc);
  --vc.endpoint->vcs;
  auto gone = use_.vcs.take(vc);
  if (vc.attached > 0)
    use_.vcs.keep(std::move(gone));
  else
    let_go(vc);
}

bool VcEndings::leave_backlog(Vc& vc) {
  if (!vc.in<IsInBacklog>()) return false;
  vc.leave<IsInBacklog>();
  --vc.endpoint->in_backlog;
  return true;
}

[[gnu::noinline]] void VcEndings::left_behind(VcId id, std::uint32_t frames) {
  if (const auto gone = use_.vcs.left_behind(id, frames)) let_go(*gone);
}

// The last update of the channel that the user sees.
void VcEndings::let_go(Vc& vc) {
  vc.channel.complete(vc.channel.taken());
  if (vc.channel.state() != ChannelState::kFailed) vc.channel.set_state(ChannelState::kClosed);
  if (vc.channel.needs_wake()) use_.common.event(Event::Kind::kWake, vc.id, vc.cookie);
  use_.common.event(Event::Kind::kVcGone, vc.id, vc.cookie);
}

// protocol: 5.11
void VcEndings::on_request_disconnect(const wire::Frame& frame, Time now) {
  auto& common = use_.common;
  // protocol: 5.42
  if (common.is_spoofed(frame)) return common.drop(DropReason::kBadSource);
  const auto& h = frame.header;
  const auto rd = wire::decode_as<wire::RequestDisconnect>(h);
  auto* const vc = use_.vcs.at(h.d_port);
  if (h.d_port == 0) return common.drop(DropReason::kBadPort);  // 0 never names a connection
  if (vc == nullptr) return answer_unknown(frame, now);
  // protocol: 5.13
  if (vc->local_key != h.d_key) return common.drop(DropReason::kBadKey);
  // protocol: 11.10
  if (vc->connectionless()) return common.drop(DropReason::kBadState);
  if (vc->peer_mac != frame.src) return common.drop(DropReason::kBadPeer);
  // The answer to a question of a dial ends nothing.
  // protocol: 13.20
  if (rd.i_key == 0 && common.config.padded_requests)
    return vc->passive ? common.drop(DropReason::kBadKey) : use_.dials.is_there(*vc, now);
  vc->heard = now;
  vc->waits_for_proof = false;
  const auto before = vc->state.state();
  if (!vc->state.next(VcEvent::kRequest)) return common.drop(DropReason::kBadState);
  // protocol: 5.5
  if (before == VcState::kConnecting && rd.i_key == 0) return common.drop(DropReason::kBadKey);
  // protocol: 5.14
  if (before == VcState::kConnecting) {  // its CA was lost: takes the names from this frame
    common.counters.add(Counter::kVcOpened);
    use_.dials.end(*vc, now);
    vc->peer_port = h.s_port;
    vc->peer_key = rd.i_key;
  }
  vc->state.must(VcEvent::kRequest);
  if (vc->state == VcState::kPeerClosing && before != VcState::kPeerClosing) {
    stop_traffic(*vc);
    // protocol: 5.32
    vc->peer_option = to_option(frame.option);
    vc->channel.set_state(ChannelState::kPeerClosed);
    vc->handshake.start(now, unasked_interval(*vc));
    use_.departures.leaves(*vc, NodeDepartures::kHandshakeClock);
    count(*vc, Counter::kVcClosed);
    common.event(Event::Kind::kVcOver, vc->id, vc->cookie);
    use_.wake_ups.touch(*vc);
  }
  send(*vc, wire::Op::kDisconnectAnswer);
  use_.timers.update(*vc);
}

// The RD names no connection. It has ended here long ago: the answer is built from the request
// itself, so that the peer can always finish.
// protocol: 5.12
void VcEndings::answer_unknown(const wire::Frame& frame, Time now) {
  const auto& h = frame.header;
  const auto i_key = wire::decode_as<wire::RequestDisconnect>(h).i_key;
  // A requester that was answered and ends before its connection was made.
  if (use_.strangers.drop(frame.src, h, now)) use_.peers.ended({frame.src, h.s_port, i_key}, now);
  auto da = wire::to_header(wire::DisconnectAnswer{.r_key = h.d_key});
  da.d_port = h.s_port;
  da.s_port = h.d_port;
  da.d_key = i_key;
  use_.common.answer_stranger(frame.src, {da});
}

void VcEndings::on_disconnect_answer(Vc& vc, Time now) {
  // A repeated DA means that our DC was lost. Our DC is gone with the connection unless both sides
  // closed.
  if (!vc.state.advance(VcEvent::kConfirmed)) return use_.common.drop(vc.illegal());
  send(vc, wire::Op::kDisconnectComplete);
  if (vc.state == kVcGone) return forget(vc, now);
  vc.handshake.start(now, unasked_interval(vc));  // from here on only our DA waits, for its DC
  use_.departures.leaves(vc, NodeDepartures::kHandshakeClock);
  use_.timers.update(vc);
}

void VcEndings::on_disconnect_complete(Vc& vc, Time now) {
  if (!vc.state.advance(VcEvent::kComplete)) return use_.common.drop(vc.illegal());
  if (vc.state != VcState::kPeerClosed) return;  // our own RD still waits for its DA
  vc.handshake.stop();
  if (vc.user_closed) return forget(vc, now);
  use_.timers.update(vc);
}

bool VcEndings::repeat(Vc& vc, Time now) {
  if (!vc.handshake.due(now)) return true;
  if (!vc.handshake.again(now)) return give_up(vc, now);
  use_.common.counters.add(Counter::kRetries);
  use_.departures.leaves(vc, NodeDepartures::kHandshakeClock);
  const bool both = vc.state == VcState::kBothClosing;
  if (vc.state == VcState::kConnecting) use_.dials.repeat(vc, now);
  if (both || vc.state == VcState::kClosing) send(vc, wire::Op::kRequestDisconnect);
  if (both || vc.state == VcState::kPeerClosing) send(vc, wire::Op::kDisconnectAnswer);
  return true;
}

// True: the user still holds it.
bool VcEndings::give_up(Vc& vc, Time now) {
  const auto after = vc.state.next(VcEvent::kGaveUp);
  if (after == VcState::kFailed) {
    use_.common.counters.add(Counter::kVcUnanswered);
    return fail(vc, VcEvent::kGaveUp, -ETIMEDOUT, now), false;
  }
  if (after == kVcGone) {
    count(vc, Counter::kVcFailed);
    return forget(vc, now), false;
  }
  // protocol: 5.16
  vc.state.must(VcEvent::kGaveUp);  // PeerClosed
  if (vc.user_closed) return forget(vc, now), false;
  return true;
}

// RD, DA and DC have the same field.
void VcEndings::send(const Vc& vc, wire::Op op) {
  auto h = vc.header_for(wire::RequestDisconnect{.i_key = vc.local_key});
  h.op_flags = wire::op_flags(op);
  const bool asks = op == wire::Op::kRequestDisconnect;
  use_.common.answer(vc, h, asks ? vc.option : OptionPayload{});
}

}  // namespace stp
