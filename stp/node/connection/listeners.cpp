// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/listeners.h"

#include <algorithm>
#include <cerrno>

#include "stp/base/scarce_memory.h"
#include "stp/wire/padding.h"

namespace stp {
namespace {

// w7 of a CA whose R_Max_STU is `own`. The RC that made the connection, or makes it, has the
// I_Max_STU `asked`; this one, a repeat perhaps, has `padded`, and the CA is no longer than it.
// `heeds`: its sender heeds marks.
// protocol: 13.20
std::uint32_t padding_of_answer(unsigned padded, unsigned asked, unsigned own, bool heeds,
                                const OptionPayload& option) {
  const wire::Padding padding{.known = true,
                              .option = option.has_value(),
                              .heeds = heeds,
                              .asked = asked,
                              .stu = std::min({padded, asked, own})};
  return padding.word();
}

}  // namespace

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
  vc->local_key = names.key != 0 ? names.key : wanted.key;
  if (vc->local_key == 0) vc->local_key = new_key();
  vc->local_max_stu = std::min(wanted.max_stu, use_.common.config.max_stu);
  vc->channel = NodeChannel(channel, {wanted.slots, wanted.credits});
  vc->heard = now;
  ++endpoint.vcs;
  return &use_.vcs.add(std::move(vc));
}

// protocol: 5.5
std::uint32_t Openings::new_key() {
  for (;;)
    if (const auto key = use_.common.random.next(); key != 0) return key;
}

// Records what the peer announced in its RC or CA.
// protocol: 5.26, 6.1
void Openings::adopt_peer(Vc& vc, const PeerName& name, const PeerSizes& sizes) {
  vc.peer_mac = name.mac;
  vc.peer_port = name.port;
  vc.peer_key = name.key;
  expect(vc);
  vc.peer_bufsize = static_cast<std::uint8_t>(sizes.bufsize);
  vc.peer_max_stu = sizes.max_stu;
  vc.peer_slots = sizes.slots;
  vc.credit.reset(sizes.slots);
  vc.send_stu_log2 =
      static_cast<std::uint8_t>(stu_size_log2(vc.peer_max_stu, vc.local_max_stu, vc.peer_bufsize));
  const auto bufsize = vc.endpoint->config.bufsize;
  const auto stu_log2 = stu_size_log2(vc.local_max_stu, vc.peer_max_stu, bufsize);
  vc.inbound.configure({bufsize, stu_log2}, !vc.endpoint->config.recover,
                       use_.pacing.account(vc, stu_log2), vc.endpoint->owner->windows);
}

// The peer may know of a router where this host sees none: one in its own subnet that translates
// addresses looks like a neighbour.
// protocol: 13.9
void Openings::find_path(Vc& vc) {
  const bool peer_shares = vc.marks != Marks::kNone;
  if (peer_shares && use_.common.config.ways != nullptr) use_.common.config.ways->tell_marks();
  if (vc.inbound.account().path() != nullptr) return;
  if (peer_shares || use_.common.is_shared(vc.peer_mac)) use_.pacing.share_path(vc);
}

// What the heads of most of its frames are compared with.
void Openings::expect(Vc& vc) const {
  vc.expected = {use_.common.config.mac, vc.peer_mac, vc.local_port, vc.peer_port, vc.local_key};
}

int Openings::connect(Endpoint& endpoint, const MacAddr& peer, std::uint32_t uport,
                      std::byte* channel, std::uint64_t cookie, VcId& out, Time now,
                      const OptionPayload& option) {
  if (endpoint.config.connectionless) return -EOPNOTSUPP;
  if (peer.is_group() || peer.is_zero()) return -EINVAL;
  auto* const vc = make(endpoint, channel, cookie, now);
  if (vc == nullptr) return endpoint.config.port != 0 ? -EADDRINUSE : -ENOSPC;
  const Needed from_here_on;
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
  const auto max_stu = std::min(endpoint.config.max_stu, use_.common.config.max_stu);
  const auto bufsize = static_cast<std::uint8_t>(endpoint.config.bufsize);
  const auto stu_log2 = static_cast<std::uint8_t>(stu_size_log2(max_stu, max_stu, bufsize));
  // First, because it may find no memory.
  auto unscheduled =
      std::make_unique<UnscheduledBlocks>(bufsize, stu_log2, endpoint.owner->windows);
  auto guard = std::make_unique<KeyGuard>();
  auto* const vc = make(endpoint, channel, cookie, now);
  if (vc == nullptr) return endpoint.config.port != 0 ? -EADDRINUSE : -ENOSPC;
  vc->state.must(VcEvent::kBegun);
  vc->end_counted = true;  // not counted as a connection
  vc->peer_bufsize = bufsize;
  vc->peer_max_stu = vc->local_max_stu;
  vc->send_stu_log2 = stu_log2;
  vc->unscheduled = std::move(unscheduled);
  vc->guard = std::move(guard);
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
  vc->padded = asker.padded;
  if (asker.heeds_marks && use_.common.heeds_marks()) vc->marks = Marks::kHeeded;
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

void Openings::proven(Vc& vc) {
  vc.waits_for_proof = false;
  find_path(vc);
  expect(vc);
  use_.timers.update(vc);
  use_.turns.enter(vc);
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
    if (frame.padded && !shows_way(*vc, frame, now)) return;
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
    if (frame.padded && wire::padding_of(h).heeds && common.heeds_marks())
      vc->marks = Marks::kHeeded;
    find_path(*vc);
    open(*vc, VcEvent::kAnswer);
    use_.wake_ups.touch(*vc);
    use_.timers.update(*vc);
    // protocol: 13.21
    if (common.config.padded_requests && frame.src != common.config.mac)
      use_.states.prove(*vc, now);
    return use_.turns.enter(*vc);
  }
  if (h.d_port == 0) return common.drop(DropReason::kBadPort);
  if (keyless) return common.drop(DropReason::kBadKey);
  // To an RC of another length, 5.36 gives another Key.
  // protocol: 13.20
  const bool repeated =
      ours && h.s_port == vc->peer_port && (ca.r_key == vc->peer_key || frame.padded);
  if (repeated || refused) return common.drop(DropReason::kBadState);
  end_ghost(frame);
}

// Whether a padded CA shows that the way carries, to and fro, what it and its RC promise. That RC
// counts from now on. If the way back carries less, the RC is sent anew for shorter STUs.
// protocol: 13.20
bool Openings::shows_way(Vc& vc, const wire::Frame& frame, Time now) {
  const auto padding = wire::padding_of(frame.header);
  if (padding.asked > vc.local_max_stu) {
    use_.common.drop(DropReason::kBadState);
    return false;
  }
  if (padding.stu >= std::min(padding.asked, frame.header.sync)) {
    use_.dials.reached(vc, padding.asked, now);
    return true;
  }
  // Whoever has chosen the Key cannot ask under another one, and takes what there is.
  if (vc.endpoint->config.key != 0) {
    vc.local_max_stu = padding.asked;
    return true;
  }
  if (!Dials::is_cut_again(vc)) return false;
  end_ghost(frame);
  vc.local_key = new_key();
  use_.dials.begin_shorter(vc, padding.stu, now);
  return false;
}

// The answerer holds a connection that no user here wants: ends it at once.
// protocol: 5.9
void Openings::end_ghost(const wire::Frame& answer) {
  const auto& h = answer.header;
  use_.common.counters.add(Counter::kGhostCa);
  auto rd = wire::to_header(wire::RequestDisconnect{.i_key = h.d_key});
  rd.d_port = h.s_port;
  rd.s_port = h.d_port;
  rd.d_key = wire::decode_as<wire::ConnectionAnswer>(h).r_key;
  use_.common.answer_stranger(answer.src, {rd});
}

wire::Header Openings::answer_of(const Vc& vc, unsigned padded, const OptionPayload& option) {
  auto ca = vc.header_for(wire::ConnectionAnswer{
      .r_slots = static_cast<std::uint16_t>(vc.channel.slots()),
      .r_bufsize = vc.endpoint->config.bufsize,
      .r_key = vc.local_key,
      .r_max_stu = vc.local_max_stu,
      .i_uport = vc.peer_uport,
      .r_uport = vc.endpoint->uport,
  });
  if (padded != 0)
    ca.b_num = padding_of_answer(padded, vc.peer_max_stu, vc.local_max_stu,
                                 vc.marks != Marks::kNone, option);
  return ca;
}

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

// Who exists has answered the CA of such a request within this time, however long the way.
// protocol: 5.40
constexpr Time kAnswersCa = kSecond;

// The same where it gives way to any network: its answer, or the CA, may have been lost once.
// protocol: 5.40
constexpr Time kAnswersAgain = 2 * kSecond;

}  // namespace

// The connection has ended, or a frame with its Key has arrived; if the user decides: its RC has
// been repeated.
bool Newcomers::is_proven(const Unproven::Entry& entry) const {
  const auto* const vc = use_.vcs.find(entry.vc);
  if (vc == nullptr) return true;
  if (vc->state == VcState::kAsked) return vc->heard != entry.made;
  return vc->state != VcState::kOpen || vc->heard != entry.made || vc->traffic.rx_control != 0;
}

void Newcomers::remove_proven() {
  unproven_.remove_if([this](const auto& entry) { return is_proven(entry); });
}

// All frames of the peer are looked at until one has proven it.
void Newcomers::add(Vc& vc, Time now) {
  if (use_.common.config.padded_requests) {
    vc.waits_for_proof = true;
    vc.expected = {};
  }
  unproven_.add({.vc = vc.id,
                 .listener = vc.endpoint->id,
                 .source = use_.common.source_of(vc.peer_mac),
                 .network = use_.common.network_of(vc.peer_mac),
                 .made = now});
}

void Newcomers::admitted(Vc& vc, Time now) {
  unproven_.remove_if([&vc](const auto& entry) { return entry.vc == vc.id; });
  if (vc.peer_mac != use_.common.config.mac) add(vc, now);
}

// Removes the proven entries and asks those that have been silent.
void Newcomers::look(Time now) {
  unproven_.looked_at(now);
  work::count("unproven connections", unproven_.entries().size());
  remove_proven();
  for (auto& entry : unproven_.entries()) {
    auto& vc = *use_.vcs.find(entry.vc);
    if (vc.state != VcState::kOpen || vc.user_closed || entry.asked != kNever) continue;
    if (now - entry.made < Unproven::kSilence) continue;
    entry.asked = now;
    // protocol: 13.21
    if (vc.waits_for_proof) continue;  // it had to answer the CA, and gets no RS
    use_.states.ask(vc, StateExchange::Ask::kKeepAlive, now);
  }
}

bool Newcomers::must_prove(const Endpoint& endpoint, const MacAddr& from, Time now) {
  const auto source = use_.common.source_of(from);
  if (!unproven_.is_full(endpoint.id, source)) return false;
  if (!unproven_.is_worth_a_look(now)) return true;
  look(now);
  return unproven_.is_full(endpoint.id, source);
}

bool Newcomers::reclaim(Endpoint& endpoint, Time now) {
  if (endpoint.backlog.empty()) return false;
  if (unproven_.is_worth_a_look(now)) look(now);
  work::count("unproven connections", unproven_.entries().size());
  for (const auto& entry : unproven_.entries()) {
    if (entry.listener != endpoint.id || entry.asked == kNever) continue;
    if (now - entry.asked < Unproven::kSilence || is_proven(entry)) continue;
    auto& vc = *use_.vcs.find(entry.vc);
    if (!vc.in<IsInBacklog>()) continue;
    endpoint.crowded_until = now + kCrowded;
    give_up(vc, now);
    return true;
  }
  return false;
}

bool Newcomers::make_room_to_ask(Endpoint& endpoint, const Requester& asker, Time now) {
  if (endpoint.stock.empty()) endpoint.crowded_until = now + kCrowded;
  use_.strangers.prepare(use_.common.random);
  if (!use_.strangers.asked_before(asker)) {
    use_.common.drop(DropReason::kRcFirst);
    return false;
  }
  remove_proven();
  const auto source = use_.common.source_of(asker.mac);
  if (!endpoint.stock.empty() && !unproven_.is_full(endpoint.id, source)) return true;
  const auto goes = giving_way(endpoint, use_.common.network_of(asker.mac), now);
  if (goes != kNoneId) {
    endpoint.crowded_until = now + kCrowded;
    give_up(*use_.vcs.find(goes), now);
    remove_proven();
  }
  if (!unproven_.is_full(endpoint.id, source)) return true;
  use_.common.drop(DropReason::kBacklogFull);
  return false;
}

// Who gives way to a requester of that network. If another one has most of the places, and at least
// two more: its oldest one that no user has accepted, or one that has been accepted and stayed
// silent; without a channel for the requester, only one whose channel comes back at once. Else the
// oldest that should have shown itself since it was accepted, or for which nobody asks any more,
// but for a network with most of the places none of one that has fewer. kNoneId: nobody does.
// protocol: 5.40
VcId Newcomers::giving_way(const Endpoint& endpoint, const MacAddr& network, Time now) {
  const auto own = unproven_.held(endpoint.id, network);
  VcId asks = kNoneId, silent = kNoneId, forgotten = kNoneId;
  const auto first = [](VcId& who, const Unproven::Entry& entry) {
    if (who == kNoneId) who = entry.vc;
  };
  work::count("unproven connections", unproven_.entries().size());
  for (const auto& entry : unproven_.entries()) {
    if (entry.listener != endpoint.id) continue;
    const auto& vc = *use_.vcs.find(entry.vc);
    const auto held = unproven_.held(endpoint.id, entry.network);
    const bool asked = vc.state == VcState::kAsked;
    const bool frees = !endpoint.stock.empty() || (asked && vc.in<IsInBacklog>());
    const bool crowd = frees && held > std::max(own + 1, Unproven::kOfSource);
    const bool may = own <= Unproven::kOfSource || held >= own;
    const bool owes = frees && may && vc.waits_for_proof;
    if (crowd && asked) first(asks, entry);
    const Time age = now - entry.made;
    const bool late = (crowd && age >= kAnswersCa) || (owes && age >= kAnswersAgain);
    if (late && !asked) first(silent, entry);
    if (asked && may && age >= kNotAskedAgain) first(forgotten, entry);
  }
  if (asks != kNoneId) return asks;
  return silent != kNoneId ? silent : forgotten;
}

// If the peer exists after all, it learns of the end and may repeat its RC: over IP when it
// responds to the CA (end_unknown()).
void Newcomers::give_up(Vc& vc, Time now) {
  use_.common.counters.add(Counter::kUnprovenEnded);
  if (vc.state == VcState::kAsked) {
    // It had no time to repeat its RC.
    if (now - vc.heard < kNotAskedAgain)
      use_.endings.let_ask_again(vc, now);
    else
      refuse(KnownPeers::name_of(vc), vc.peer_uport, vc.endpoint->uport, {});
    return use_.endings.fail(vc, VcEvent::kGaveUp, -ECONNABORTED, now);
  }
  const auto rd = vc.header_for(wire::RequestDisconnect{.i_key = vc.local_key});
  if (!vc.waits_for_proof)
    use_.common.answer_stranger(vc.peer_mac, {rd}, vc.endpoint->config.checksum);
  // A user that has accepted it learns of it.
  if (!vc.in<IsInBacklog>()) return use_.endings.fail(vc, VcEvent::kGaveUp, -ETIMEDOUT, now);
  use_.endings.count(vc, Counter::kVcFailed);
  use_.endings.forget(vc, now, false);
}

void Newcomers::end_unknown(const wire::Frame& frame) {
  const auto& h = frame.header;
  const auto rsr = wire::decode_as<wire::RequestStateResponse>(h);
  const bool proof = h.op() == wire::Op::kRequestStateResponse && h.has(wire::flag::kReject) &&
                     rsr.b_num == wire::kNoId;
  if (!use_.common.config.padded_requests || !proof || h.d_port == 0) return;
  auto rd = wire::to_header(wire::RequestDisconnect{.i_key = h.d_key});
  rd.d_port = h.s_port;
  rd.s_port = h.d_port;
  rd.d_key = rsr.sync;
  use_.common.answer_stranger(frame.src, {rd});
}

// Whether an RC under pressure is answered. Over IP, who gets an RS, too, has sent two RCs for it.
// protocol: 5.39, 13.21
bool Newcomers::may_answer(const Requester& asker, Time now) {
  const bool again = use_.strangers.asked_before(asker);
  if (!use_.common.config.padded_requests || asker.proves)
    return again || use_.strangers.has_time_for_first(now);
  if (again) use_.strangers.forget_asked(asker);
  return again;
}

void Newcomers::answer(const Endpoint& endpoint, const Requester& asker, Time now) {
  auto& common = use_.common;
  auto& strangers = use_.strangers;
  if (endpoint.config.key != 0) return common.drop(DropReason::kBacklogFull);  // the Key is fixed
  strangers.prepare(common.random);
  if (!may_answer(asker, now)) return common.drop(DropReason::kRcFirst);
  use_.vcs.make_places(kFewestPorts * use_.vcs.share().count);
  const auto names = strangers.answer(
      asker, use_.vcs.places(), [this](std::uint16_t port) { return use_.vcs.at(port) == nullptr; },
      now);
  if (names.port == 0) return common.drop(DropReason::kBacklogFull);
  auto ca = wire::to_header(wire::ConnectionAnswer{
      .r_slots = static_cast<std::uint16_t>(endpoint.config.slots),
      .r_bufsize = endpoint.config.bufsize,
      .r_key = names.key,
      .r_max_stu = std::min(endpoint.config.max_stu, common.config.max_stu),
      .i_uport = asker.rc.i_uport,
      .r_uport = endpoint.uport,
  });
  const auto asked = asker.rc.i_max_stu;
  if (asker.padded) ca.b_num = padding_of_answer(asked, asked, ca.sync, false, {});
  ca.d_port = asker.port;
  ca.s_port = names.port;
  ca.d_key = asker.rc.i_key;
  const bool checksum = endpoint.config.checksum;
  // protocol: 13.21
  const bool proves = common.config.padded_requests && asker.proves;
  const bool answered =
      proves ? common.answer_stranger(asker.mac, {ca}, checksum)
             : common.answer_stranger(asker.mac, {ca, Strangers::question(asker, names)}, checksum);
  if (answered) common.counters.add(Counter::kRcCookies);
}

void Newcomers::refuse(const PeerName& to, std::uint32_t i_uport, std::uint32_t r_uport,
                       const OptionPayload& option) {
  auto ca = wire::to_header(wire::ConnectionAnswer{.i_uport = i_uport, .r_uport = r_uport},
                            wire::flag::kReject);
  ca.d_port = to.port;
  ca.d_key = to.key;
  use_.common.answer_stranger(to.mac, {ca}, false, option);
}

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
    use_.newcomers.refuse(peer, asker.rc.i_uport, asker.rc.r_uport,
                          fitting(*refusal, asker.padded, asker.option));
    return true;
  }
  auto* const vc = use_.peers.find(peer);
  if (vc == nullptr) return false;
  use_.common.counters.add(Counter::kDuplicateRc);
  // A repeated RC proves nothing about its sender.
  // protocol: 5.41
  if (vc->state == VcState::kOpen) {
    // That of a user who has closed is for the RD.
    const auto option = vc->user_closed ? OptionPayload{} : vc->option;
    const auto fits = fitting(option, asker.padded, asker.option);
    use_.common.answer_stranger(vc->peer_mac, {Openings::answer_of(*vc, asker.padding(), fits)},
                                vc->endpoint->config.checksum, fits);
  }
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
  const Requester asker{frame.src,
                        frame.header.s_port,
                        wire::decode_as<wire::RequestConnection>(frame.header),
                        to_option(frame.option),
                        frame.padded,
                        frame.padded && wire::padding_of(frame.header).proves,
                        frame.padded && wire::padding_of(frame.header).heeds};
  // It is for older stations. One that is padded comes, too.
  // protocol: 13.20
  if (common.config.padded_requests && !frame.padded && wire::padding_of(frame.header).known)
    return common.counters.add(Counter::kDuplicateRc);
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
  if (inspects && !own && (crowded || !room) && !newcomers.make_room_to_ask(endpoint, asker, now))
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
  if (memory_is_scarce) return refuse_for(asker, Counter::kNoResources);
  auto* const vc = use_.openings.make_passive(endpoint, asker, {}, now);
  if (vc == nullptr) return refuse_for(asker, Counter::kNoResources);
  // protocol: 5.34
  if (!own) use_.newcomers.add(*vc, now);
  if (!vc->waits_for_proof) use_.openings.find_path(*vc);
  if (endpoint.config.inspect)
    ask_user(*vc, now);
  else
    open(*vc, VcEvent::kBegun);
}

// The peer learns of it at once.
void Listeners::open(Vc& vc, VcEvent how) {
  use_.openings.open(vc, how);
  const auto option = fitting(vc.option, vc.padded, vc.peer_option);
  const auto padded = vc.padded ? vc.peer_max_stu : 0;
  use_.common.answer(vc, Openings::answer_of(vc, padded, option), option);
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
  use_.newcomers.refuse(peer, vc.peer_uport, vc.endpoint->uport,
                        fitting(option, vc.padded, vc.peer_option));
}

// The option payload of the answer to an RC: over IP none if that makes it longer than the RC.
// protocol: 13.21
OptionPayload Listeners::fitting(const OptionPayload& option, bool padded,
                                 const OptionPayload& of_request) const {
  const bool longer = !padded && !of_request;
  return use_.common.config.padded_requests && longer ? OptionPayload{} : option;
}

Vc* Listeners::on_unknown_port(const wire::Frame& frame, Time now) {
  auto& common = use_.common;
  const auto none = [&] {
    common.drop(DropReason::kBadPort);
    use_.newcomers.end_unknown(frame);
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
  if (memory_is_scarce) return none(DropReason::kBacklogFull);
  if (endpoint.stock.empty()) {
    use_.strangers.hold(asker, names, now);
    use_.newcomers.reclaim(endpoint, now);
    use_.common.event(Event::Kind::kStockLow, endpoint.id);
    return none(DropReason::kBacklogFull);
  }
  if (names.port >= use_.vcs.places() || use_.vcs.full()) return none(DropReason::kBadPort);
  use_.strangers.made(names.port);
  auto* const vc = use_.openings.make_passive(endpoint, asker, names, now);
  vc->marks = Marks::kNone;  // as its CA said
  use_.openings.find_path(*vc);
  use_.openings.open(*vc, VcEvent::kBegun);
  use_.common.counters.add(Counter::kRcProven);
  use_.timers.update(*vc);
  return vc;
}

}  // namespace stp
