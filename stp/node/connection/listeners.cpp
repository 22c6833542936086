// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/listeners.h"

#include <algorithm>
#include <cerrno>

namespace stp {

Listeners::~Listeners() {
  while (!listeners_.empty()) unlisten(*listeners_.begin()->second);
}

int Listeners::listen(Endpoint& endpoint, std::uint32_t uport) {
  if (endpoint.config.connectionless) return -EOPNOTSUPP;
  if (endpoint.listening) return endpoint.uport == uport ? 0 : -EINVAL;
  if (listeners_.contains(uport)) return -EADDRINUSE;
  const auto& config = use_.common.config;
  if (config.shards != nullptr && !config.shards->listen(uport, config.shard)) return -EADDRINUSE;
  listeners_.emplace(uport, &endpoint);
  endpoint.listening = true;
  endpoint.uport = uport;
  use_.strangers.allocate();
  return 0;
}

void Listeners::unlisten(Endpoint& endpoint) {
  if (!endpoint.listening) return;
  const auto& config = use_.common.config;
  [[maybe_unused]] const auto erased = listeners_.erase(endpoint.uport);
  STP_ASSERT(erased == 1, "who stops to listen is one of the listeners");
  if (config.shards != nullptr) config.shards->unlisten(endpoint.uport, config.shard);
  endpoint.listening = false;
}

int Listeners::accept(const Endpoint& endpoint, VcId& out) {
  if (!endpoint.listening) return -EINVAL;
  if (endpoint.backlog.empty()) return -EAGAIN;
  auto& vc = endpoint.backlog.front();
  out = vc.id;
  VcEndings::leave_backlog(vc);
  return 0;
}

// Whether the requester has been answered before: it gets the same answer.
// protocol: 5.4, 5.29
bool Listeners::answer_again(const Requester& asker, Time now) {
  const auto peer = asker.name();
  if (const auto* const refusal = refusals_.find(peer, now)) {
    use_.common.counters.add(Counter::kDuplicateRc);
    use_.newcomers.refuse(peer, asker.rc.i_uport, asker.rc.r_uport, *refusal);
    return true;
  }
  auto* const vc = use_.peers.find(peer);
  if (vc == nullptr) return false;
  use_.common.counters.add(Counter::kDuplicateRc);
  // A repeated RC proves nothing about its sender.
  // protocol: 5.41
  if (vc->state == VcState::kOpen)
    use_.common.answer_stranger(vc->peer_mac, {Openings::answer_of(*vc)},
                                vc->endpoint->config.checksum, vc->option);
  if (vc->state == VcState::kAsked) vc->heard = now;  // the requester still waits
  return true;
}

// protocol: 5.6
void Listeners::refuse_for(const Requester& asker, Counter why) {
  use_.common.counters.add(why);
  use_.newcomers.refuse(asker.name(), asker.rc.i_uport, asker.rc.r_uport, {});
}

// protocol: 5.1
void Listeners::on_request(const wire::Frame& frame, Time now) {
  auto& common = use_.common;
  auto& newcomers = use_.newcomers;
  // protocol: 5.42
  if (common.is_spoofed(frame)) return common.drop(DropReason::kBadSource);
  const Requester asker{frame.src, frame.header.s_port,
                        wire::decode_as<wire::RequestConnection>(frame.header),
                        to_option(frame.option)};
  // protocol: 5.5
  if (asker.rc.i_key == 0) return common.drop(DropReason::kBadKey);
  if (answer_again(asker, now)) return;
  const auto peer = asker.name();
  // protocol: 5.10
  if (use_.peers.ended_lately(peer, now)) return common.drop(DropReason::kLateRc);
  const auto listener = listeners_.find(asker.rc.r_uport);
  // protocol: 5.6
  if (listener == listeners_.end()) return refuse_for(asker, Counter::kNoListener);
  auto& endpoint = *listener->second;
  const bool inspects = endpoint.config.inspect;
  // The RC comes from a user of this Node, whose address cannot be forged.
  // protocol: 5.34, 5.42
  const bool own = frame.src == common.config.mac;
  // protocol: 5.36
  if (!inspects && use_.strangers.has_answered(peer, use_.vcs.places(), now))
    return newcomers.answer(endpoint, asker, now);
  const bool room = !endpoint.stock.empty();
  const bool crowded =
      !own && (newcomers.must_prove(endpoint, frame.src, now) || now < endpoint.crowded_until);
  if (inspects && !own && (crowded || !room) && !newcomers.make_room_to_ask(endpoint, peer, now))
    return;
  // protocol: 5.7
  if (!room && (inspects || own || !newcomers.reclaim(endpoint, now))) {
    common.drop(DropReason::kBacklogFull);
    common.event(Event::Kind::kStockLow, endpoint.id);
    return;
  }
  // protocol: 5.35
  if (!inspects && (crowded || !room)) return newcomers.answer(endpoint, asker, now);
  make(endpoint, asker, own, now);
}

// `own`: the requester is a user of this Node.
void Listeners::make(Endpoint& endpoint, const Requester& asker, bool own, Time now) {
  auto* const vc = use_.openings.make_passive(endpoint, asker, {}, now);
  if (vc == nullptr) return refuse_for(asker, Counter::kNoResources);
  // protocol: 5.34
  if (!own) use_.newcomers.add(*vc, now);
  if (endpoint.config.inspect)
    ask_user(*vc, now);
  else
    open(*vc, VcEvent::kBegun);
}

// The peer learns of it at once.
void Listeners::open(Vc& vc, VcEvent how) {
  use_.openings.open(vc, how);
  use_.common.answer(vc, Openings::answer_of(vc), vc.option);
  use_.timers.update(vc);
}

// protocol: 5.27
void Listeners::ask_user(Vc& vc, Time now) {
  vc.state.must(VcEvent::kShown);
  vc.end_counted = true;  // never opened
  vc.decision.begin(now);
  use_.timers.update(vc);
}

// protocol: 5.28
int Listeners::admit(Vc& vc, const OptionPayload& option, Time now) {
  if (vc.state == VcState::kFailed) return vc.error;
  if (!vc.state.next(VcEvent::kAdmit)) return -EISCONN;
  vc.decision.stop();
  vc.option = option;
  vc.end_counted = false;
  vc.heard = now;
  use_.newcomers.admitted(vc, now);
  open(vc, VcEvent::kAdmit);
  use_.wake_ups.touch(vc);
  use_.turns.enter(vc);
  return 0;
}

// protocol: 5.28
int Listeners::refuse(Vc& vc, const OptionPayload& option, Time now) {
  if (vc.state == VcState::kFailed) {
    use_.endings.forget(vc, now);
    return 0;
  }
  if (vc.state != VcState::kAsked) return -EISCONN;
  use_.common.counters.add(Counter::kRcRejected);
  answer_refusal(vc, option, now);
  use_.endings.forget(vc, now);
  return 0;
}

// protocol: 5.30
bool Listeners::still_decides(Vc& vc, Time now) {
  if (now < vc.decision.deadline(vc.heard)) return true;
  use_.common.counters.add(Counter::kRcUndecided);
  answer_refusal(vc, {}, now);
  const auto error = vc.decision.is_late(now) ? -ETIMEDOUT : -ECONNABORTED;
  use_.endings.fail(vc, VcEvent::kGaveUp, error, now);
  return false;
}

void Listeners::answer_refusal(const Vc& vc, const OptionPayload& option, Time now) {
  const auto peer = KnownPeers::name_of(vc);
  refusals_.remember(peer, option, now);
  use_.newcomers.refuse(peer, vc.peer_uport, vc.endpoint->uport, option);
}

Vc* Listeners::on_unknown_port(const wire::Frame& frame, Time now) {
  auto& common = use_.common;
  const auto none = [&common] {
    common.drop(DropReason::kBadPort);
    return nullptr;
  };
  const auto& h = frame.header;
  const auto op = h.op();
  const bool ends = op == wire::Op::kDisconnectAnswer || op == wire::Op::kDisconnectComplete;
  if (!use_.strangers.expects(now) || ends) return none();
  const auto asker = use_.strangers.recognise(frame.src, h, now);
  if (!asker) return none();
  auto* const vc = make_proven(*asker, {h.d_port, h.d_key}, now);
  if (vc == nullptr) return nullptr;
  vc->heard = now;
  if (op != wire::Op::kRequestStateResponse) return vc;
  // The existence of the connection answers our own question.
  common.counters.add(Counter::kRxControl);
  ++vc->traffic.rx_control;
  return nullptr;
}

// nullptr: the reason has been counted. A repeat of the peer's frame may find room.
Vc* Listeners::make_proven(const Requester& asker, const Strangers::Names& names, Time now) {
  const auto none = [this](DropReason why) {
    use_.common.drop(why);
    return nullptr;
  };
  if (use_.peers.find(asker.name()) != nullptr) return none(DropReason::kBadPort);
  if (use_.peers.ended_lately(asker.name(), now)) return none(DropReason::kLateRc);
  const auto listener = listeners_.find(asker.rc.r_uport);
  if (listener == listeners_.end()) return none(DropReason::kBadPort);
  auto& endpoint = *listener->second;
  if (endpoint.stock.empty()) {
    use_.strangers.hold(asker, names, now);
    use_.newcomers.reclaim(endpoint, now);
    use_.common.event(Event::Kind::kStockLow, endpoint.id);
    return none(DropReason::kBacklogFull);
  }
  if (names.port >= use_.vcs.places() || use_.vcs.full()) return none(DropReason::kBadPort);
  use_.strangers.made(names.port);
  auto* const vc = use_.openings.make_passive(endpoint, asker, names, now);
  use_.openings.open(*vc, VcEvent::kBegun);
  use_.common.counters.add(Counter::kRcProven);
  use_.timers.update(*vc);
  return vc;
}

}  // namespace stp
