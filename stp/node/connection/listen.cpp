// SPDX-License-Identifier: BSD-3-Clause
// The listener's side: answers Request_Connections at once, or shows them to a user who decides
// (docs/protocol.md, section 5).
#include <algorithm>
#include <cerrno>

#include "stp/node/impl.h"

namespace stp {
namespace {

// The time for a user to decide on a Request_Connection, and the time without a repeat after which
// the requester no longer waits.
// protocol: 5.30
constexpr Time kDecisionPatience = 60 * kSecond;
constexpr Time kAskedSilence = 5 * kSecond;

}  // namespace

int Node::Impl::listen(EndpointId id, std::uint32_t uport) {
  auto* const endpoint = endpoints.find(id);
  if (endpoint == nullptr) return -EBADF;
  if (endpoint->config.connectionless) return -EOPNOTSUPP;
  if (endpoint->listening) return endpoint->uport == uport ? 0 : -EINVAL;
  if (listeners.contains(uport)) return -EADDRINUSE;
  if (config.shards != nullptr && !config.shards->listen(uport, config.shard)) return -EADDRINUSE;
  listeners.emplace(uport, endpoint);
  endpoint->listening = true;
  endpoint->uport = uport;
  if (!strangers) strangers = std::make_unique<Strangers>(vcs.share());
  return 0;
}

int Node::Impl::accept(EndpointId id, VcId& out) {
  auto* const endpoint = endpoints.find(id);
  if (endpoint == nullptr) return -EBADF;
  if (!endpoint->listening) return -EINVAL;
  if (endpoint->backlog.empty()) return -EAGAIN;
  out = endpoint->backlog.front().id;
  leave_backlog(endpoint->backlog.front());
  return 0;
}

// protocol: 5.1
void Node::Impl::on_request_connection(const wire::Frame& frame, Time now) {
  // protocol: 5.42
  if (is_spoofed(frame)) return drop(DropReason::kBadSource);
  const Requester asker{frame.src, frame.header.s_port,
                        wire::decode_as<wire::RequestConnection>(frame.header),
                        to_option(frame.option)};
  // protocol: 5.5
  if (asker.rc.i_key == 0) return drop(DropReason::kBadKey);
  const auto peer = asker.name();
  // protocol: 5.29
  if (const auto* const refusal = refusals.find(peer, now)) {
    counters.add(Counter::kDuplicateRc);
    return send_refusal(peer, asker.rc.i_uport, asker.rc.r_uport, *refusal);
  }
  if (const auto known = by_peer.find(peer); known != by_peer.end()) {
    // protocol: 5.4
    counters.add(Counter::kDuplicateRc);
    auto& vc = *known->second;
    // A repeated RC proves nothing about its sender.
    // protocol: 5.41
    if (vc.state == VcState::kOpen)
      answer_stranger(vc.peer_mac, {connection_answer(vc)}, vc.endpoint->config.checksum,
                      vc.option);
    if (vc.state == VcState::kAsked) vc.heard = now;  // the requester still waits
    return;
  }
  // protocol: 5.10
  if (closed.contains(peer, now)) return drop(DropReason::kLateRc);

  // protocol: 5.6
  const auto refuse_for = [&](Counter why) {
    counters.add(why);
    send_refusal(peer, asker.rc.i_uport, asker.rc.r_uport, {});
  };
  const auto listener = listeners.find(asker.rc.r_uport);
  if (listener == listeners.end()) return refuse_for(Counter::kNoListener);
  auto& endpoint = *listener->second;
  const bool inspects = endpoint.config.inspect;
  // The RC comes from a user of this Node, whose address cannot be forged.
  // protocol: 5.34, 5.42
  const bool own = frame.src == config.mac;
  // protocol: 5.36
  if (!inspects && strangers->has_answered(peer, vcs.places(), now))
    return answer_unproven(endpoint, asker, now);
  const bool room = !endpoint.stock.empty();
  const bool crowded =
      !own && (must_prove(endpoint, frame.src, now) || now < endpoint.crowded_until);
  if (inspects && !own && (crowded || !room) && !make_room_to_ask(endpoint, peer, now)) return;
  // protocol: 5.7
  if (!room && (inspects || own || !reclaim(endpoint, now))) {
    drop(DropReason::kBacklogFull);
    event(Event::Kind::kStockLow, endpoint.id);
    return;
  }
  // protocol: 5.35
  if (!inspects && (crowded || !room)) return answer_unproven(endpoint, asker, now);
  auto* const vc = make_passive(endpoint, asker, {}, now);
  if (vc == nullptr) return refuse_for(Counter::kNoResources);
  // protocol: 5.34
  if (!own) unproven.add({.vc = vc->id, .listener = endpoint.id, .mac = frame.src, .made = now});
  if (endpoint.config.inspect)
    ask_user(*vc, now);
  else
    open_passive(*vc, VcEvent::kBegun);
}

// Makes a requested connection, with a channel from stock, for the user to accept.
Vc* Node::Impl::make_passive(Endpoint& endpoint, const Requester& asker,
                             const Strangers::Names& names, Time now) {
  const auto stocked = endpoint.stock.front();
  auto* const vc = make_vc(endpoint, stocked.channel, stocked.cookie, now, names);
  if (vc == nullptr) return nullptr;
  endpoint.stock.pop_front();
  vc->passive = true;
  vc->peer_uport = asker.rc.i_uport;
  vc->peer_option = asker.option;
  adopt_peer(*vc, asker.name(), {asker.rc.i_slots, asker.rc.i_bufsize, asker.rc.i_max_stu});
  by_peer.emplace(asker.name(), vc);
  endpoint.backlog.push_back(*vc);
  ++endpoint.in_backlog;
  event(Event::Kind::kAcceptReady, endpoint.id);
  event(Event::Kind::kStockLow, endpoint.id);
  return vc;
}

void Node::Impl::open_passive(Vc& vc, VcEvent how) {
  vc.state.must(how);
  vc.channel.set_state(ChannelState::kOpen);
  counters.add(Counter::kVcOpened);
  answer(vc.peer_mac, connection_answer(vc), vc.endpoint->config.checksum, vc.option);
  set_timer(vc);
}

// protocol: 5.27
void Node::Impl::ask_user(Vc& vc, Time now) {
  vc.state.must(VcEvent::kShown);
  vc.end_counted = true;  // never opened
  vc.decide_by = now + kDecisionPatience;
  set_timer(vc);
}

Time Node::Impl::undecided_deadline(const Vc& vc) {
  return vc.state == VcState::kAsked ? std::min(vc.decide_by, vc.heard + kAskedSilence) : kNever;
}

// protocol: 5.28
int Node::Impl::admit(VcId id, const OptionPayload& option, Time now) {
  auto* const vc = find_vc(id);
  if (vc == nullptr) return -EBADF;
  if (vc->state == VcState::kFailed) return vc->error;
  if (!vc->state.next(VcEvent::kAdmit)) return -EISCONN;
  vc->option = option;
  vc->end_counted = false;
  vc->heard = now;
  // From here on its peer can prove itself with the answer.
  unproven.remove_if([id](const auto& entry) { return entry.vc == id; });
  if (vc->peer_mac != config.mac)
    unproven.add({.vc = id, .listener = vc->endpoint->id, .mac = vc->peer_mac, .made = now});
  open_passive(*vc, VcEvent::kAdmit);
  wake_ups.touch(*vc);
  turns.enter(*vc);
  return 0;
}

// protocol: 5.28
int Node::Impl::refuse(VcId id, const OptionPayload& option, Time now) {
  auto* const vc = find_vc(id);
  if (vc == nullptr) return -EBADF;
  if (vc->state == VcState::kFailed) {
    forget(*vc, now);
    return 0;
  }
  if (vc->state != VcState::kAsked) return -EISCONN;
  counters.add(Counter::kRcRejected);
  answer_refusal(*vc, option, now);
  forget(*vc, now);
  return 0;
}

// protocol: 5.30
void Node::Impl::end_undecided(Vc& vc, Time now) {
  counters.add(Counter::kRcUndecided);
  answer_refusal(vc, {}, now);
  fail(vc, VcEvent::kGaveUp, now >= vc.decide_by ? -ETIMEDOUT : -ECONNABORTED, now);
}

void Node::Impl::answer_refusal(const Vc& vc, const OptionPayload& option, Time now) {
  const PeerName peer{vc.peer_mac, vc.peer_port, vc.peer_key};
  refusals.remember(peer, option, now);
  send_refusal(peer, vc.peer_uport, vc.endpoint->uport, option);
}

// protocol: 5.6
void Node::Impl::send_refusal(const PeerName& to, std::uint32_t i_uport, std::uint32_t r_uport,
                              const OptionPayload& option) {
  auto ca = wire::to_header(wire::ConnectionAnswer{.i_uport = i_uport, .r_uport = r_uport},
                            wire::flag::kReject);
  ca.d_port = to.port;
  ca.d_key = to.key;
  answer_stranger(to.mac, {ca}, false, option);
}

}  // namespace stp
