// SPDX-License-Identifier: BSD-3-Clause
// The listener's side: Request_Connections answered at once, or shown to a user who decides
// (docs/protocol.md, section 5).
#include <algorithm>
#include <cerrno>

#include "stp/engine/impl.h"

namespace stp {
namespace {

// How long a user may think about a Request_Connection, and after how long without a repeat of it
// nobody waits for the answer any more.
// protocol: 5.30
constexpr Time kDecisionPatience = 60 * kSecond;
constexpr Time kAskedSilence = 5 * kSecond;

}  // namespace

int Node::Impl::listen(EndpointId id, std::uint32_t uport) {
  auto* const endpoint = endpoints.find(id);
  if (endpoint == nullptr) return -EBADF;
  if (endpoint->config.connectionless) return -EOPNOTSUPP;
  if (endpoint->listening) return endpoint->uport == uport ? 0 : -EINVAL;
  if (!listeners.emplace(uport, endpoint).second) return -EADDRINUSE;
  endpoint->listening = true;
  endpoint->uport = uport;
  return 0;
}

int Node::Impl::accept(EndpointId id, VcId& out) {
  auto* const endpoint = endpoints.find(id);
  if (endpoint == nullptr) return -EBADF;
  if (!endpoint->listening) return -EINVAL;
  if (endpoint->backlog.empty()) return -EAGAIN;
  out = endpoint->backlog.front();
  endpoint->backlog.pop_front();
  return 0;
}

// protocol: 5.1
void Node::Impl::on_request_connection(const wire::Frame& frame, Time now) {
  auto const& h = frame.header;
  PeerName const peer{frame.src, h.s_port, h.offset};
  // protocol: 5.29
  if (auto const* const refusal = refusals.find(peer, now)) {
    counters.add(Counter::kDuplicateRc);
    return send_refusal(frame.src, h, *refusal);
  }
  if (auto const known = by_peer.find(peer); known != by_peer.end()) {
    // protocol: 5.4
    counters.add(Counter::kDuplicateRc);
    auto& vc = *known->second;
    if (vc.state == VcState::kOpen) send_connection_answer(vc);
    if (vc.state == VcState::kAsked) vc.heard = now;  // it still waits
    return;
  }
  // protocol: 5.10
  if (closed.contains(peer, now)) return counters.add(Counter::kLateRc);

  // protocol: 5.6
  auto const refuse_for = [&](Counter why) {
    counters.add(why);
    send_refusal(frame.src, h, {});
  };
  auto const listener = listeners.find(h.d_id);
  if (listener == listeners.end()) return refuse_for(Counter::kNoListener);
  auto& endpoint = *listener->second;
  // protocol: 5.7
  if (endpoint.stock.empty()) {
    counters.add(Counter::kBacklogFull);
    event(Event::Kind::kStockLow, endpoint.id);
    return;
  }
  auto const stocked = endpoint.stock.front();
  auto* const vc = make_vc(endpoint, stocked.channel, stocked.cookie, now);
  if (vc == nullptr) return refuse_for(Counter::kNoResources);
  endpoint.stock.pop_front();
  vc->passive = true;
  vc->peer_uport = h.s_id;
  vc->peer_option = to_option(frame.option);
  adopt_peer(*vc, frame);
  by_peer.emplace(peer, vc);
  endpoint.backlog.push_back(vc->id);
  if (endpoint.config.inspect)
    ask_user(*vc, now);
  else
    open_passive(*vc);
  event(Event::Kind::kAcceptReady, endpoint.id);
  event(Event::Kind::kStockLow, endpoint.id);
}

void Node::Impl::open_passive(Vc& vc) {
  vc.state = VcState::kOpen;
  vc.channel.set_state(ChannelState::kOpen);
  counters.add(Counter::kVcOpened);
  send_connection_answer(vc);
  set_timer(vc);
}

// protocol: 5.27
void Node::Impl::ask_user(Vc& vc, Time now) {
  vc.state = VcState::kAsked;
  vc.end_counted = true;  // it has not been opened
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
  auto const after = vc_next(vc->state, VcEvent::kAdmit);
  if (!after) return -EISCONN;
  vc->option = option;
  vc->end_counted = false;
  vc->heard = now;
  open_passive(*vc);
  touch(*vc);
  make_ready(*vc);
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
  fail(vc, now >= vc.decide_by ? -ETIMEDOUT : -ECONNABORTED, now);
}

void Node::Impl::answer_refusal(const Vc& vc, const OptionPayload& option, Time now) {
  refusals.remember({vc.peer_mac, vc.peer_port, vc.peer_key}, option, now);
  wire::Header request;
  request.s_port = vc.peer_port;
  request.offset = vc.peer_key;
  request.s_id = vc.peer_uport;
  request.d_id = vc.endpoint->uport;
  send_refusal(vc.peer_mac, request, option);
}

// protocol: 5.6
void Node::Impl::send_refusal(const MacAddr& to, const wire::Header& request,
                              const OptionPayload& option) {
  wire::Header no;
  no.op_flags = wire::op_flags(wire::Op::kConnectionAnswer, wire::flag::kReject);
  no.d_port = request.s_port;
  no.d_key = request.offset;
  no.d_id = request.s_id;
  no.s_id = request.d_id;
  answer(to, no, false, option);
}

}  // namespace stp
