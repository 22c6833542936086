// SPDX-License-Identifier: BSD-3-Clause
// Timers: retries and keep-alive.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "stp/node/impl.h"

namespace stp {
namespace {

// Limits of one turn: connections with due timers, and Blocks checked of each.
constexpr std::size_t kMostExpired = 128, kBlocksOfExpiry = 32;
constexpr Time kKeepAlive = 2 * kSecond;  // silence before the Node asks the peer [P]

bool keeps_alive(const Vc& vc) {
  return vc.state == VcState::kOpen && vc.endpoint->config.keep_alive;
}

}  // namespace

Time Node::Impl::deadline_of(const Vc& vc) const {
  auto next = std::min({vc.handshake.deadline(), vc.questions.deadline(), vc.data_check,
                        vc.drain_by, undecided_deadline(vc)});
  if (keeps_alive(vc) && !vc.questions.is_open()) next = std::min(next, vc.heard + kKeepAlive);
  return next;
}

// Keeps the timer when a deadline moves to later: the timer fires early, finds nothing due and is
// set again. So a frame from the peer costs no timer work.
void Node::Impl::set_timer(Vc& vc) {
  const auto wanted = deadline_of(vc);
  if (wanted < vc.deadline || wanted == kNever) timers.set(vc, wanted);
}

Time Node::Impl::next_deadline() const {
  const auto at_once = unfinished || untidy() ? seen : kNever;
  return std::min({timers.next(), wake_ups.deadline(), pacing.deadline(), at_once});
}

void Node::Impl::tidy() {
  auto left = kTidiedInATurn;
  left -= mxs.tidy(left);
  left -= std::min(left, pacing.tidy(left));
  while (left > 0 && !remains.empty()) {
    left -= std::min(left, remains.front().dismantle(left));
    if (remains.front().empty()) remains.pop_front();
  }
  while (left > 0 && !untidy_vcs.empty()) {
    auto& vc = untidy_vcs.pop_front();
    left -= std::min(left, vc.inbound.tidy(left));
    tidy_later(vc);
  }
}

void Node::Impl::tidy_later(InboundRemains ended) {
  ended.dismantle(kTidiedAtOnce);
  if (!ended.empty()) remains.push_back(std::move(ended));
}

void Node::Impl::tidy_later(Vc& vc) {
  if (vc.inbound.untidy() && !vc.in<IsUntidy>()) untidy_vcs.push_back(vc);
}

void Node::Impl::expire(Time now) {
  seen = now;
  unfinished = false;
  departures.start_clocks(vcs, now);
  pacing.write_off(now);
  tidy();
  // The rest stay due and come in the next turn.
  for (auto left = kMostExpired; left > 0 && timers.next() <= now;) {
    auto& vc = static_cast<Vc&>(*timers.first());
    const auto id = vc.id;
    work::count("timers");
    left -= std::min(left, 1 + expire_vc(vc, now) / kBlocksOfExpiry);
    if (auto* const still = find_vc(id)) timers.set(*still, deadline_of(*still));
  }
}

std::size_t Node::Impl::expire_vc(Vc& vc, Time now) {
  if (vc.state == VcState::kOpen && vc.handshake.due(now)) {
    vc.handshake.again(now);
    repeat_proof(vc);
  }
  if (vc.handshake.due(now)) {
    if (!vc.handshake.again(now)) {
      const auto after = vc.state.next(VcEvent::kGaveUp);
      if (after == VcState::kFailed) {
        counters.add(Counter::kVcUnanswered);
        return fail(vc, VcEvent::kGaveUp, -ETIMEDOUT, now), 0;
      }
      if (after == kVcGone) {
        count_end(vc, Counter::kVcFailed);
        return forget(vc, now), 0;
      }
      // protocol: 5.16
      vc.state.must(VcEvent::kGaveUp);  // PeerClosed
      if (vc.user_closed) return forget(vc, now), 0;
    } else {
      counters.add(Counter::kRetries);
      departures.leaves(vc, NodeDepartures::kHandshakeClock);
      const bool both = vc.state == VcState::kBothClosing;
      if (vc.state == VcState::kConnecting) send_request_connection(vc);
      if (both || vc.state == VcState::kClosing) send_disconnect(vc, wire::Op::kRequestDisconnect);
      if (both || vc.state == VcState::kPeerClosing)
        send_disconnect(vc, wire::Op::kDisconnectAnswer);
    }
  }
  if (now >= undecided_deadline(vc)) return end_undecided(vc, now), 0;
  if (vc.state != VcState::kOpen) return 0;
  if (now >= vc.drain_by) return begin_closing(vc, now), 0;
  if (vc.questions.due(now)) {
    // Any frame from the peer shows that it is alive: only silence uses up tries.
    // protocol: 5.23, 5.24
    const bool silent = now - vc.heard >= kKeepAlive;
    if (!vc.questions.again(now) && silent) return fail(vc, VcEvent::kGaveUp, -ETIMEDOUT, now), 0;
    if (!vc.questions.is_open()) return ask_slots(vc, Ask::kCredit, now), 0;
    counters.add(Counter::kRetries);
    departures.leaves(vc, NodeDepartures::kAskClock);
    send_slot_question(vc);
  }
  const auto looked = now >= vc.data_check ? recover_blocks(vc, now) : 0;
  if (vc.questions.is_time(now)) ask_slots(vc, Ask::kCredit, now);
  if (keeps_alive(vc) && now >= vc.heard + kKeepAlive) ask_slots(vc, Ask::kKeepAlive, now);
  return looked;
}

}  // namespace stp
