// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/newcomers.h"

#include <algorithm>
#include <cerrno>

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

void Newcomers::add(const Vc& vc, Time now) {
  unproven_.add({.vc = vc.id,
                 .listener = vc.endpoint->id,
                 .source = use_.common.source_of(vc.peer_mac),
                 .made = now});
}

void Newcomers::admitted(const Vc& vc, Time now) {
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

bool Newcomers::make_room_to_ask(Endpoint& endpoint, const PeerName& peer, Time now) {
  if (endpoint.stock.empty()) endpoint.crowded_until = now + kCrowded;
  use_.strangers.prepare(use_.common.random);
  if (!use_.strangers.asked_before(peer)) {
    use_.common.drop(DropReason::kRcFirst);
    return false;
  }
  remove_proven();
  const auto source = use_.common.source_of(peer.mac);
  if (!endpoint.stock.empty() && !unproven_.is_full(endpoint.id, source)) return true;
  const auto goes = std::ranges::find_if(unproven_.entries(), [&](const auto& entry) {
    return entry.listener == endpoint.id && now - entry.made >= kNotAskedAgain &&
           use_.vcs.find(entry.vc)->state == VcState::kAsked;
  });
  if (goes != unproven_.entries().end()) {
    endpoint.crowded_until = now + kCrowded;
    give_up(*use_.vcs.find(goes->vc), now);
    remove_proven();
  }
  if (!unproven_.is_full(endpoint.id, source)) return true;
  use_.common.drop(DropReason::kBacklogFull);
  return false;
}

// If the peer exists after all, it learns of the end and may repeat its RC.
void Newcomers::give_up(Vc& vc, Time now) {
  use_.common.counters.add(Counter::kUnprovenEnded);
  if (vc.state == VcState::kAsked) {
    refuse(KnownPeers::name_of(vc), vc.peer_uport, vc.endpoint->uport, {});
    return use_.endings.fail(vc, VcEvent::kGaveUp, -ECONNABORTED, now);
  }
  const auto rd = vc.header_for(wire::RequestDisconnect{.i_key = vc.local_key});
  use_.common.answer_stranger(vc.peer_mac, {rd}, vc.endpoint->config.checksum);
  use_.endings.count(vc, Counter::kVcFailed);
  use_.endings.forget(vc, now, false);
}

void Newcomers::answer(const Endpoint& endpoint, const Requester& asker, Time now) {
  auto& common = use_.common;
  auto& strangers = use_.strangers;
  if (endpoint.config.key != 0) return common.drop(DropReason::kBacklogFull);  // the Key is fixed
  strangers.prepare(common.random);
  if (!strangers.asked_before(asker.name()) && !strangers.has_time_for_first(now))
    return common.drop(DropReason::kRcFirst);
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
  ca.d_port = asker.port;
  ca.s_port = names.port;
  ca.d_key = asker.rc.i_key;
  if (common.answer_stranger(asker.mac, {ca, Strangers::question(asker, names)},
                             endpoint.config.checksum))
    common.counters.add(Counter::kRcCookies);
}

void Newcomers::refuse(const PeerName& to, std::uint32_t i_uport, std::uint32_t r_uport,
                       const OptionPayload& option) {
  auto ca = wire::to_header(wire::ConnectionAnswer{.i_uport = i_uport, .r_uport = r_uport},
                            wire::flag::kReject);
  ca.d_port = to.port;
  ca.d_key = to.key;
  use_.common.answer_stranger(to.mac, {ca}, false, option);
}

}  // namespace stp
