// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/openings.h"

#include <algorithm>
#include <cerrno>

namespace stp {

// An unused Port: the one the user asked for, else the next in turn. 0: none left.
// protocol: 5.3
std::uint16_t Openings::choose_port(const Endpoint& endpoint, Time now) {
  if (endpoint.config.port != 0) {
    if (use_.vcs.is_free(endpoint.config.port)) return endpoint.config.port;
    if (!endpoint.listening) return 0;
  }
  // Some may be promised to requesters about to prove their address.
  // protocol: 5.36
  return use_.vcs.choose([&](std::uint16_t port) { return use_.strangers.may_promise(port, now); });
}

// `names`: the names in the answer already sent; if none, chooses them here.
Vc* Openings::make(Endpoint& endpoint, std::byte* channel, std::uint64_t cookie, Time now,
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
  while (vc->local_key == 0) vc->local_key = use_.common.random.next();
  vc->local_max_stu = std::min(wanted.max_stu, use_.common.config.max_stu);
  vc->channel = NodeChannel(channel, {wanted.slots, wanted.credits});
  vc->heard = now;
  ++endpoint.vcs;
  return &use_.vcs.add(std::move(vc));
}

// Records what the peer announced in its RC or CA.
// protocol: 5.26, 6.1
void Openings::adopt_peer(Vc& vc, const PeerName& name, const PeerSizes& sizes) {
  vc.peer_mac = name.mac;
  vc.peer_port = name.port;
  vc.peer_key = name.key;
  vc.expected = {use_.common.config.mac, vc.peer_mac, vc.local_port, vc.peer_port, vc.local_key};
  vc.peer_bufsize = sizes.bufsize;
  vc.peer_max_stu = sizes.max_stu;
  vc.peer_slots = sizes.slots;
  vc.credit.reset(sizes.slots);
  vc.send_stu_log2 = stu_size_log2(vc.peer_max_stu, vc.local_max_stu, vc.peer_bufsize);
  const auto bufsize = vc.endpoint->config.bufsize;
  const auto stu_log2 = stu_size_log2(vc.local_max_stu, vc.peer_max_stu, bufsize);
  vc.inbound.configure({bufsize, stu_log2}, !vc.endpoint->config.recover,
                       use_.pacing.account(vc, stu_log2), vc.endpoint->owner->windows);
  if (const auto* const path = vc.inbound.account().path())
    vc.channel.suggest_block(path->block_log2());
}

int Openings::connect(Endpoint& endpoint, const MacAddr& peer, std::uint32_t uport,
                      std::byte* channel, std::uint64_t cookie, VcId& out, Time now,
                      const OptionPayload& option) {
  if (endpoint.config.connectionless) return -EOPNOTSUPP;
  if (peer.is_group() || peer.is_zero()) return -EINVAL;
  auto* const vc = make(endpoint, channel, cookie, now);
  if (vc == nullptr) return endpoint.config.port != 0 ? -EADDRINUSE : -ENOSPC;
  vc->peer_mac = peer;
  vc->peer_uport = uport;
  vc->option = option;
  use_.dials.begin(*vc, now);
  out = vc->id;
  return 0;
}

// protocol: 11.1, 11.8
int Openings::open_port(Endpoint& endpoint, std::byte* channel, std::uint64_t cookie, VcId& out,
                        Time now) {
  if (!endpoint.config.connectionless) return -EINVAL;
  if (endpoint.vcs > 0) return -EBUSY;
  auto* const vc = make(endpoint, channel, cookie, now);
  if (vc == nullptr) return endpoint.config.port != 0 ? -EADDRINUSE : -ENOSPC;
  vc->state.must(VcEvent::kBegun);
  vc->end_counted = true;  // not counted as a connection
  vc->peer_bufsize = endpoint.config.bufsize;
  vc->peer_max_stu = vc->local_max_stu;
  vc->send_stu_log2 = stu_size_log2(vc->local_max_stu, vc->local_max_stu, vc->peer_bufsize);
  vc->unscheduled = std::make_unique<UnscheduledBlocks>(vc->peer_bufsize, vc->send_stu_log2,
                                                        endpoint.owner->windows);
  vc->guard = std::make_unique<KeyGuard>();
  vc->channel.set_state(ChannelState::kOpen);
  out = vc->id;
  return 0;
}

Vc* Openings::make_passive(Endpoint& endpoint, const Requester& asker,
                           const Strangers::Names& names, Time now) {
  STP_ASSERT(!endpoint.stock.empty(), "a requested connection gets a stocked channel");
  const auto stocked = endpoint.stock.front();
  auto* const vc = make(endpoint, stocked.channel, stocked.cookie, now, names);
  if (vc == nullptr) return nullptr;
  endpoint.stock.pop_front();
  vc->passive = true;
  vc->peer_uport = asker.rc.i_uport;
  vc->peer_option = asker.option;
  adopt_peer(*vc, asker.name(), {asker.rc.i_slots, asker.rc.i_bufsize, asker.rc.i_max_stu});
  use_.peers.add(*vc);
  endpoint.backlog.push_back(*vc);
  ++endpoint.in_backlog;
  use_.common.event(Event::Kind::kAcceptReady, endpoint.id);
  use_.common.event(Event::Kind::kStockLow, endpoint.id);
  return vc;
}

void Openings::open(Vc& vc, VcEvent how) {
  vc.state.must(how);
  vc.channel.set_state(ChannelState::kOpen);
  use_.common.counters.add(Counter::kVcOpened);
}

// protocol: 5.1
void Openings::on_answer(const wire::Frame& frame, Time now) {
  auto& common = use_.common;
  // protocol: 5.42
  if (common.is_spoofed(frame)) return common.drop(DropReason::kBadSource);
  const auto& h = frame.header;
  const auto ca = wire::decode_as<wire::ConnectionAnswer>(h);
  auto* const vc = use_.vcs.at(h.d_port);
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
      common.counters.add(Counter::kVcRefused);
      return use_.endings.fail(*vc, VcEvent::kRefusal, -ECONNREFUSED, now);
    }
    if (const auto measured = vc->handshake.measured(now)) vc->round_trip.sample(measured);
    vc->handshake.stop();
    use_.dials.end(*vc, now);
    adopt_peer(*vc, {frame.src, h.s_port, ca.r_key}, {ca.r_slots, ca.r_bufsize, ca.r_max_stu});
    open(*vc, VcEvent::kAnswer);
    use_.wake_ups.touch(*vc);
    use_.timers.update(*vc);
    return use_.turns.enter(*vc);
  }
  if (h.d_port == 0) return common.drop(DropReason::kBadPort);
  if (keyless) return common.drop(DropReason::kBadKey);
  const bool repeated = ours && h.s_port == vc->peer_port && ca.r_key == vc->peer_key;
  if (repeated || refused) return common.drop(DropReason::kBadState);
  // The answerer holds a connection that no user here wants: ends it at once.
  // protocol: 5.9
  common.counters.add(Counter::kGhostCa);
  auto rd = wire::to_header(wire::RequestDisconnect{.i_key = h.d_key});
  rd.d_port = h.s_port;
  rd.s_port = h.d_port;
  rd.d_key = ca.r_key;
  common.answer_stranger(frame.src, {rd});
}

wire::Header Openings::answer_of(const Vc& vc) {
  return vc.header_for(wire::ConnectionAnswer{
      .r_slots = static_cast<std::uint16_t>(vc.channel.slots()),
      .r_bufsize = vc.endpoint->config.bufsize,
      .r_key = vc.local_key,
      .r_max_stu = vc.local_max_stu,
      .i_uport = vc.peer_uport,
      .r_uport = vc.endpoint->uport,
  });
}

}  // namespace stp
