// SPDX-License-Identifier: BSD-3-Clause
// Requesters that have not proved their address. A few of them become connections all the same;
// beyond that, nothing depends on the state kept for them (docs/protocol.md, 5.34 to 5.42).
#include <algorithm>

#include "stp/node/impl.h"

namespace stp {
namespace {

// After the first answer without kept state, the Port table has at least this many places, so that
// the Ports in such answers are far apart.
constexpr std::size_t kFewestPorts = 4'096;
// For this long after a connection was dropped, others do not take its place.
// protocol: 5.40
constexpr Time kCrowded = kSecond;

// For requests shown to the user: the RC comes again after 10 ms and after 30 ms.
// protocol: 5.40
constexpr Time kNotAskedAgain = 35 * kMillisecond;

}  // namespace

// The frame has our address as its source but did not come from here.
// protocol: 5.42
bool Node::Impl::is_spoofed(const wire::Frame& frame) const {
  return frame.src == config.mac && !looped;
}

// The connection has ended, or a frame with its Key has arrived; if the user decides: its RC has
// been repeated.
bool Node::Impl::is_proven(const Unproven::Entry& entry) const {
  const auto* const vc = find_vc(entry.vc);
  if (vc == nullptr) return true;
  if (vc->state == VcState::kAsked) return vc->heard != entry.made;
  return vc->state != VcState::kOpen || vc->heard != entry.made || vc->traffic.rx_control != 0;
}

// Removes the proven entries and asks those that have been silent.
void Node::Impl::look_at_unproven(Time now) {
  unproven.looked_at(now);
  work::count("unproven connections", unproven.entries().size());
  unproven.remove_if([this](const auto& entry) { return is_proven(entry); });
  for (auto& entry : unproven.entries()) {
    auto& vc = *find_vc(entry.vc);
    if (vc.state != VcState::kOpen || vc.user_closed || entry.asked != kNever) continue;
    if (now - entry.made < Unproven::kSilence) continue;
    entry.asked = now;
    ask_slots(vc, Ask::kKeepAlive, now);
  }
}

// protocol: 5.34
bool Node::Impl::must_prove(const Endpoint& endpoint, const MacAddr& from, Time now) {
  if (!unproven.is_full(endpoint.id, from)) return false;
  if (!unproven.is_worth_a_look(now)) return true;
  look_at_unproven(now);
  return unproven.is_full(endpoint.id, from);
}

// Frees a channel for proven requesters: that of the oldest connection that no user has accepted
// and whose peer did not answer when asked. True: one will be in stock.
// protocol: 5.40
bool Node::Impl::reclaim(Endpoint& endpoint, Time now) {
  if (endpoint.backlog.empty()) return false;
  if (unproven.is_worth_a_look(now)) look_at_unproven(now);
  work::count("unproven connections", unproven.entries().size());
  for (const auto& entry : unproven.entries()) {
    if (entry.listener != endpoint.id || entry.asked == kNever) continue;
    if (now - entry.asked < Unproven::kSilence || is_proven(entry)) continue;
    if (!find_vc(entry.vc)->in<IsInBacklog>()) continue;
    endpoint.crowded_until = now + kCrowded;
    give_up_unproven(*find_vc(entry.vc), now);
    return true;
  }
  return false;
}

// If the user decides before any answer, a requester can show only that it keeps asking: such a one
// displaces one that does not. False: the RC is dropped.
// protocol: 5.40
bool Node::Impl::make_room_to_ask(Endpoint& endpoint, const PeerName& peer, Time now) {
  if (endpoint.stock.empty()) endpoint.crowded_until = now + kCrowded;
  strangers->prepare(random);
  if (!strangers->asked_before(peer)) {
    drop(DropReason::kRcFirst);
    return false;
  }
  const auto drop_proven = [this] {
    unproven.remove_if([this](const auto& entry) { return is_proven(entry); });
  };
  drop_proven();
  if (!endpoint.stock.empty() && !unproven.is_full(endpoint.id, peer.mac)) return true;
  const auto goes = std::ranges::find_if(unproven.entries(), [&](const auto& entry) {
    return entry.listener == endpoint.id && now - entry.made >= kNotAskedAgain &&
           find_vc(entry.vc)->state == VcState::kAsked;
  });
  if (goes != unproven.entries().end()) {
    endpoint.crowded_until = now + kCrowded;
    give_up_unproven(*find_vc(goes->vc), now);
    drop_proven();
  }
  if (!unproven.is_full(endpoint.id, peer.mac)) return true;
  drop(DropReason::kBacklogFull);
  return false;
}

// If the peer exists after all, it learns of the end and may repeat its RC.
void Node::Impl::give_up_unproven(Vc& vc, Time now) {
  counters.add(Counter::kUnprovenEnded);
  if (vc.state == VcState::kAsked) {
    send_refusal({vc.peer_mac, vc.peer_port, vc.peer_key}, vc.peer_uport, vc.endpoint->uport, {});
    return fail(vc, VcEvent::kGaveUp, -ECONNABORTED, now);
  }
  const auto rd = header_for(vc, wire::RequestDisconnect{.i_key = vc.local_key});
  answer_stranger(vc.peer_mac, {rd}, vc.endpoint->config.checksum);
  count_end(vc, Counter::kVcFailed);
  forget(vc, now, false);
}

// Sends a CA, and an RS whose answer repeats what the RC said.
// protocol: 5.35, 5.37
void Node::Impl::answer_unproven(Endpoint& endpoint, const Requester& asker, Time now) {
  if (endpoint.config.key != 0) return drop(DropReason::kBacklogFull);  // the Key is fixed
  strangers->prepare(random);
  if (!strangers->asked_before(asker.name()) && !strangers->has_time_for_first(now))
    return drop(DropReason::kRcFirst);
  vcs.make_places(kFewestPorts * vcs.share().count);
  const auto names = strangers->answer(
      asker, vcs.places(), [this](std::uint16_t port) { return vcs.at(port) == nullptr; }, now);
  if (names.port == 0) return drop(DropReason::kBacklogFull);
  auto ca = wire::to_header(wire::ConnectionAnswer{
      .r_slots = static_cast<std::uint16_t>(endpoint.config.slots),
      .r_bufsize = endpoint.config.bufsize,
      .r_key = names.key,
      .r_max_stu = std::min(endpoint.config.max_stu, config.max_stu),
      .i_uport = asker.rc.i_uport,
      .r_uport = endpoint.uport,
  });
  ca.d_port = asker.port;
  ca.s_port = names.port;
  ca.d_key = asker.rc.i_key;
  if (answer_stranger(asker.mac, {ca, Strangers::question(asker, names)}, endpoint.config.checksum))
    counters.add(Counter::kRcCookies);
}

// The Port is unused, or this frame proves that its sender got our answer.
// protocol: 5.18, 5.35
void Node::Impl::on_unknown_port(const wire::Frame& frame, Time now) {
  const auto& h = frame.header;
  const auto op = h.op();
  const bool ends = op == wire::Op::kDisconnectAnswer || op == wire::Op::kDisconnectComplete;
  if (!strangers || !strangers->expects(now) || ends) return drop(DropReason::kBadPort);
  const auto asker = strangers->recognise(frame.src, h, now);
  if (!asker) return drop(DropReason::kBadPort);
  auto* const vc = make_proven(*asker, {h.d_port, h.d_key}, now);
  if (vc == nullptr) return;
  vc->heard = now;
  // The existence of the connection answers our own question.
  if (op != wire::Op::kRequestStateResponse) return receive_on_vc(*vc, frame, now);
  counters.add(Counter::kRxControl);
  ++vc->traffic.rx_control;
}

// nullptr: the reason has been counted. A repeat of the peer's frame may find room.
Vc* Node::Impl::make_proven(const Requester& asker, const Strangers::Names& names, Time now) {
  const auto none = [this](DropReason why) {
    drop(why);
    return nullptr;
  };
  if (by_peer.contains(asker.name())) return none(DropReason::kBadPort);
  if (closed.contains(asker.name(), now)) return none(DropReason::kLateRc);
  const auto listener = listeners.find(asker.rc.r_uport);
  if (listener == listeners.end()) return none(DropReason::kBadPort);
  auto& endpoint = *listener->second;
  if (endpoint.stock.empty()) {
    strangers->hold(asker, names, now);
    reclaim(endpoint, now);
    event(Event::Kind::kStockLow, endpoint.id);
    return none(DropReason::kBacklogFull);
  }
  if (names.port >= vcs.places() || vcs.full()) return none(DropReason::kBadPort);
  strangers->made(names.port);
  auto* const vc = make_passive(endpoint, asker, names, now);
  vc->state.must(VcEvent::kBegun);
  vc->channel.set_state(ChannelState::kOpen);
  counters.add(Counter::kVcOpened);
  counters.add(Counter::kRcProven);
  set_timer(*vc);
  return vc;
}

// protocol: 5.41
bool Node::Impl::answer_stranger(const MacAddr& dst, std::initializer_list<wire::Header> headers,
                                 bool checksum, const OptionPayload& option) {
  if (const auto room = answers.room_for_stranger(dst, headers.size());
      room != Answers::Added::kYes) {
    counters.add(room == Answers::Added::kFull ? Counter::kAnswersFull : Counter::kAddressFull);
    return false;
  }
  for (const auto& header : headers) answers.add_for_stranger({dst, header, checksum, option});
  return true;
}

}  // namespace stp
