// SPDX-License-Identifier: BSD-3-Clause
// Makes and ends connections (docs/protocol.md, section 5). For listeners see listen.cpp.
#include <algorithm>
#include <cerrno>

#include "stp/node/impl.h"

namespace stp {
namespace {

// RD is repeated for at least this long before the peer is considered dead.
constexpr Time kClosePatience = kSecond;

// The end of a VC has no RS to ask about it: RD and DA are repeated as slowly as RC.
// protocol: 5.21
Time unasked_interval(const Vc& vc) {
  return std::max(vc.round_trip.timeout(), RoundTrip::kInitial);
}

}  // namespace

// An unused Port: the one the user asked for, else the next in turn. 0: none left.
// protocol: 5.3
std::uint16_t Node::Impl::choose_port(const Endpoint& endpoint, Time now) {
  if (endpoint.config.port != 0) {
    if (vcs.is_free(endpoint.config.port)) return endpoint.config.port;
    if (!endpoint.listening) return 0;
  }
  // Some may be promised to requesters about to prove their address.
  // protocol: 5.36
  return vcs.choose(
      [&](std::uint16_t port) { return strangers && strangers->may_promise(port, now); });
}

// `names`: the names in the answer already sent; if none, chooses them here.
Vc* Node::Impl::make_vc(Endpoint& endpoint, std::byte* channel, std::uint64_t cookie, Time now,
                        const Strangers::Names& names) {
  const auto port = names.port != 0 ? names.port : choose_port(endpoint, now);
  if (port == 0) return nullptr;
  auto vc = std::make_unique<Vc>();
  const auto& wanted = endpoint.config;
  vc->endpoint = &endpoint;
  vc->cookie = cookie;
  vc->local_port = port;
  // protocol: 5.5
  vc->local_key = names.key != 0 ? names.key : wanted.key;
  while (vc->local_key == 0) vc->local_key = random.next();
  vc->local_max_stu = std::min(wanted.max_stu, config.max_stu);
  vc->channel = NodeChannel(channel, {wanted.slots, wanted.credits});
  vc->heard = now;
  ++endpoint.vcs;
  return &vcs.add(std::move(vc));
}

// Records what the peer announced in its RC or CA.
// protocol: 5.26, 6.1
void Node::Impl::adopt_peer(Vc& vc, const PeerName& name, const PeerSizes& sizes) {
  vc.peer_mac = name.mac;
  vc.peer_port = name.port;
  vc.peer_key = name.key;
  vc.expected = {config.mac, vc.peer_mac, vc.local_port, vc.peer_port, vc.local_key};
  vc.peer_bufsize = sizes.bufsize;
  vc.peer_max_stu = sizes.max_stu;
  vc.peer_slots = sizes.slots;
  vc.credit.reset(sizes.slots);
  vc.send_stu_log2 = stu_size_log2(vc.peer_max_stu, vc.local_max_stu, vc.peer_bufsize);
  const auto bufsize = vc.endpoint->config.bufsize;
  const auto stu_log2 = stu_size_log2(vc.local_max_stu, vc.peer_max_stu, bufsize);
  vc.inbound.configure({bufsize, stu_log2}, !vc.endpoint->config.recover,
                       pacing.account(*vc.endpoint->owner, stu_log2), vc.endpoint->owner->windows);
}

int Node::Impl::connect(EndpointId id, const MacAddr& peer, std::uint32_t uport, std::byte* channel,
                        std::uint64_t cookie, VcId& out, Time now, const OptionPayload& option) {
  auto* const endpoint = endpoints.find(id);
  if (endpoint == nullptr) return -EBADF;
  if (endpoint->config.connectionless) return -EOPNOTSUPP;
  if (peer.is_group() || peer.is_zero()) return -EINVAL;
  auto* const vc = make_vc(*endpoint, channel, cookie, now);
  if (vc == nullptr) return endpoint->config.port != 0 ? -EADDRINUSE : -ENOSPC;
  vc->peer_mac = peer;
  vc->peer_uport = uport;
  vc->option = option;
  dial(*vc, now);
  out = vc->id;
  return 0;
}

int Node::Impl::close(VcId id, bool at_once, Time now, const OptionPayload& option) {
  auto* const vc = find_vc(id);
  if (vc == nullptr) return -EBADF;
  vc->user_closed = true;
  leave_backlog(*vc);
  switch (vc->state.state()) {
    case VcState::kPeerClosed:
    case VcState::kFailed:
      forget(*vc, now);
      break;
    case VcState::kConnecting:
      begin_closing(*vc, now);
      break;
    case VcState::kAsked:
      return refuse(id, {}, now);
    case VcState::kOpen:
      // protocol: 5.32
      vc->option = option;
      if (at_once)
        begin_closing(*vc, now);
      else
        drain(*vc, now);
      break;
    case VcState::kClosing:
    case VcState::kBothClosing:
    case VcState::kPeerClosing:
      break;  // already disconnecting
  }
  return 0;
}

// Sends the queued requests first. RD follows when none is left, or when they make no progress.
// protocol: 5.17, 5.43
void Node::Impl::drain(Vc& vc, Time now) {
  vc.drain_by = now + kDrainPatience;
  turns.enter(vc);
  set_timer(vc);
}

// protocol: 5.2
void Node::Impl::begin_closing(Vc& vc, Time now) {
  if (vc.connectionless()) return forget(vc, now);  // no peer to tell
  vc.state.must(VcEvent::kClose);
  // Not answered yet: a CA that still comes is answered like that of an unknown connection.
  if (vc.state == kVcGone) return forget(vc, now);
  stop_traffic(vc);
  vc.handshake.start(now, unasked_interval(vc), kClosePatience);
  departures.leaves(vc, NodeDepartures::kHandshakeClock);
  send_disconnect(vc, wire::Op::kRequestDisconnect);
  set_timer(vc);
}

// Ends data both ways: grants and queued requests are void.
void Node::Impl::stop_traffic(Vc& vc) {
  tidy_later(vc.inbound.clear());
  vc.leave<IsUntidy>();
  vc.sending.active = false;
  vc.permitted.clear();
  vc.one_sided.reset();
  vc.data_check = kNever;
  pacing.drop(vc);
  vc.channel.refuse_all();
  if (vc.attached == 0) vc.channel.complete(vc.channel.taken());
  vc.questions.stop();
  vc.proof = {};
  vc.drain_by = kNever;
  mxs.abandon(vc.mxs);
  mxs.tidy(kTidiedAtOnce);
  wake_ups.touch(vc);
}

// protocol: 5.25
void Node::Impl::fail(Vc& vc, VcEvent why, int error, Time now) {
  vc.state.must(why);
  vc.error = error;
  dialed(vc, now);
  count_end(vc, Counter::kVcFailed);
  vc.handshake.stop();
  stop_traffic(vc);
  vc.channel.set_state(ChannelState::kFailed, error);
  wake_ups.touch(vc);
  const bool unseen = leave_backlog(vc);
  if (vc.user_closed || unseen) return forget(vc, now);
  event(Event::Kind::kVcOver, vc.id, vc.cookie);
  set_timer(vc);
}

// Counts the end of each open connection once, however many steps it takes.
void Node::Impl::count_end(Vc& vc, Counter how) {
  if (vc.peer_key == 0 || vc.end_counted) return;
  vc.end_counted = true;
  counters.add(how);
}

void Node::Impl::forget(Vc& vc, Time now, bool remember) {
  dialed(vc, now);
  stop_traffic(vc);
  count_end(vc, Counter::kVcClosed);
  if (remember && vc.peer_key != 0 && !vc.connectionless())
    closed.remember({vc.peer_mac, vc.peer_port, vc.peer_key}, now);
  if (vc.passive) by_peer.erase({vc.peer_mac, vc.peer_port, vc.peer_key});
  timers.remove(vc);
  Turns::leave(vc);
  vc.leave<IsTouched>();
  vc.leave<IsWatched>();
  leave_backlog(vc);
  --vc.endpoint->vcs;
  auto gone = vcs.take(vc);
  // Its user is told when no frame reads the user's memory any more.
  if (vc.attached > 0)
    vcs.keep(std::move(gone));
  else
    let_go(vc);
}

// True: it was in the backlog.
bool Node::Impl::leave_backlog(Vc& vc) {
  if (!vc.in<IsInBacklog>()) return false;
  vc.leave<IsInBacklog>();
  --vc.endpoint->in_backlog;
  return true;
}

// The last update of the channel that the user sees.
void Node::Impl::let_go(Vc& vc) {
  vc.channel.complete(vc.channel.taken());
  if (vc.channel.state() != ChannelState::kFailed) vc.channel.set_state(ChannelState::kClosed);
  if (vc.channel.needs_wake()) event(Event::Kind::kWake, vc.id, vc.cookie);
  event(Event::Kind::kVcGone, vc.id, vc.cookie);
}

// protocol: 5.1
void Node::Impl::on_connection_answer(const wire::Frame& frame, Time now) {
  // protocol: 5.42
  if (is_spoofed(frame)) return drop(DropReason::kBadSource);
  const auto& h = frame.header;
  const auto ca = wire::decode_as<wire::ConnectionAnswer>(h);
  auto* const vc = vcs.at(h.d_port);
  const bool ours = vc != nullptr && vc->local_key == h.d_key && vc->peer_mac == frame.src;
  const bool refused = h.has(wire::flag::kReject);
  // protocol: 5.8
  // protocol: 5.5
  const bool keyless = ca.r_key == 0 && !refused;
  if (ours && vc->state == VcState::kConnecting && !keyless) {
    vc->heard = now;
    // protocol: 5.19
    vc->peer_option = to_option(frame.option);
    if (refused) {
      counters.add(Counter::kVcRefused);
      return fail(*vc, VcEvent::kRefusal, -ECONNREFUSED, now);
    }
    if (const auto measured = vc->handshake.measured(now)) vc->round_trip.sample(measured);
    vc->handshake.stop();
    dialed(*vc, now);
    adopt_peer(*vc, {frame.src, h.s_port, ca.r_key}, {ca.r_slots, ca.r_bufsize, ca.r_max_stu});
    vc->state.must(VcEvent::kAnswer);
    vc->channel.set_state(ChannelState::kOpen);
    counters.add(Counter::kVcOpened);
    wake_ups.touch(*vc);
    set_timer(*vc);
    return turns.enter(*vc);
  }
  if (h.d_port == 0) return drop(DropReason::kBadPort);
  if (keyless) return drop(DropReason::kBadKey);
  const bool repeated = ours && h.s_port == vc->peer_port && ca.r_key == vc->peer_key;
  if (repeated || refused) return drop(DropReason::kBadState);
  // The answerer holds a connection that no user here wants: ends it at once.
  // protocol: 5.9
  counters.add(Counter::kGhostCa);
  auto rd = wire::to_header(wire::RequestDisconnect{.i_key = h.d_key});
  rd.d_port = h.s_port;
  rd.s_port = h.d_port;
  rd.d_key = ca.r_key;
  answer_stranger(frame.src, {rd});
}

// protocol: 5.11
void Node::Impl::on_request_disconnect(const wire::Frame& frame, Time now) {
  // protocol: 5.42
  if (is_spoofed(frame)) return drop(DropReason::kBadSource);
  const auto& h = frame.header;
  const auto rd = wire::decode_as<wire::RequestDisconnect>(h);
  auto* const vc = vcs.at(h.d_port);
  if (h.d_port == 0) return drop(DropReason::kBadPort);  // 0 never names a connection
  if (vc == nullptr) {
    // A requester that was answered and ends before its connection was made.
    if (strangers && strangers->drop(frame.src, h))
      closed.remember({frame.src, h.s_port, rd.i_key}, now);
    // protocol: 5.12
    // Ended here long ago: the answer is built from the request itself, so that the peer can always
    // finish.
    auto da = wire::to_header(wire::DisconnectAnswer{.r_key = h.d_key});
    da.d_port = h.s_port;
    da.s_port = h.d_port;
    da.d_key = rd.i_key;
    answer_stranger(frame.src, {da});
    return;
  }
  // protocol: 5.13
  if (vc->local_key != h.d_key) return drop(DropReason::kBadKey);
  // protocol: 11.10
  if (vc->connectionless()) return drop(DropReason::kBadState);
  if (vc->peer_mac != frame.src) return drop(DropReason::kBadPeer);
  vc->heard = now;
  const auto before = vc->state.state();
  if (!vc->state.next(VcEvent::kRequest)) return drop(DropReason::kBadState);
  // protocol: 5.5
  if (before == VcState::kConnecting && rd.i_key == 0) return drop(DropReason::kBadKey);
  // protocol: 5.14
  if (before == VcState::kConnecting) {  // its CA was lost: takes the names from this frame
    counters.add(Counter::kVcOpened);
    dialed(*vc, now);
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
    departures.leaves(*vc, NodeDepartures::kHandshakeClock);
    count_end(*vc, Counter::kVcClosed);
    event(Event::Kind::kVcOver, vc->id, vc->cookie);
    wake_ups.touch(*vc);
  }
  send_disconnect(*vc, wire::Op::kDisconnectAnswer);
  set_timer(*vc);
}

void Node::Impl::on_disconnect_answer(Vc& vc, Time now) {
  // A repeated DA means that our DC was lost. Our DC is gone with the connection unless both sides
  // closed.
  if (!vc.state.advance(VcEvent::kConfirmed)) return drop(not_legal(vc));
  send_disconnect(vc, wire::Op::kDisconnectComplete);
  if (vc.state == kVcGone) return forget(vc, now);
  vc.handshake.start(now, unasked_interval(vc));  // from here on only our DA waits, for its DC
  departures.leaves(vc, NodeDepartures::kHandshakeClock);
  set_timer(vc);
}

void Node::Impl::on_disconnect_complete(Vc& vc, Time now) {
  if (!vc.state.advance(VcEvent::kComplete)) return drop(not_legal(vc));
  if (vc.state != VcState::kPeerClosed) return;  // our own RD still waits for its DA
  vc.handshake.stop();
  if (vc.user_closed) return forget(vc, now);
  set_timer(vc);
}

// protocol: 3.14
void Node::Impl::send_request_connection(const Vc& vc) {
  const wire::RequestConnection rc{.i_slots = static_cast<std::uint16_t>(vc.channel.slots()),
                                   .i_bufsize = vc.endpoint->config.bufsize,
                                   .i_key = vc.local_key,
                                   .i_max_stu = vc.local_max_stu,
                                   .r_uport = vc.peer_uport};
  auto h = wire::to_header(rc);
  h.s_port = vc.local_port;
  answer(vc.peer_mac, h, vc.endpoint->config.checksum, vc.option);
}

wire::Header Node::Impl::connection_answer(const Vc& vc) const {
  return header_for(vc, wire::ConnectionAnswer{
                            .r_slots = static_cast<std::uint16_t>(vc.channel.slots()),
                            .r_bufsize = vc.endpoint->config.bufsize,
                            .r_key = vc.local_key,
                            .r_max_stu = vc.local_max_stu,
                            .i_uport = vc.peer_uport,
                            .r_uport = vc.endpoint->uport,
                        });
}

// RD, DA and DC have the same field.
void Node::Impl::send_disconnect(const Vc& vc, wire::Op op) {
  auto h = header_for(vc, wire::RequestDisconnect{.i_key = vc.local_key});
  h.op_flags = wire::op_flags(op);
  const bool asks = op == wire::Op::kRequestDisconnect;
  answer(vc.peer_mac, h, vc.endpoint->config.checksum, asks ? vc.option : OptionPayload{});
}

}  // namespace stp
