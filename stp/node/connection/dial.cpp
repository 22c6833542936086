// SPDX-License-Identifier: BSD-3-Clause
// Limits the Request_Connections under way to as many as a listener answers before any is accepted.
// The listener leaves further RCs unanswered, and their repeats come at ever longer intervals:
// without hurry() younger RCs would take every free place.
#include <algorithm>
#include <utility>

#include "stp/node/impl.h"

namespace stp {
namespace {

constexpr std::size_t kMaxUnanswered = 16;
// A waiting RC is given up no sooner than one that has left.
constexpr Time kTurnPatience = ((1U << Retry::kTries) - 1) * RoundTrip::kInitial;

}  // namespace

// protocol: 5.33
void Node::Impl::dial(Vc& vc, Time now) {
  auto& to = dialing[listener_of(vc)];
  const auto patience = vc.endpoint->config.connect_patience;
  if (to.sent.size() == kMaxUnanswered) {
    vc.dial = Dial::kWaits;
    to.waiting.insert(vc.id);
    vc.handshake.start(now, std::max(patience, kTurnPatience), 0, 1);
    return set_timer(vc);
  }
  to.sent.insert(vc.id);
  vc.dial = Dial::kSent;
  const auto waited = now - vc.heard;
  // protocol: 5.31
  vc.handshake.start(now, RoundTrip::kInitial, patience - std::min(patience, waited));
  departures.leaves(vc, NodeDepartures::kHandshakeClock);
  send_request_connection(vc);
  set_timer(vc);
}

// Answered or given up: sends the next one.
void Node::Impl::dialed(Vc& vc, Time now) {
  const auto was = std::exchange(vc.dial, Dial::kNone);
  if (was == Dial::kNone) return;
  const auto at = dialing.find(listener_of(vc));
  auto& to = at->second;
  if (was == Dial::kWaits) {
    to.waiting.erase(vc.id);
    return;
  }
  to.sent.erase(vc.id);
  if (!to.sent.empty()) hurry(to, now);
  if (to.waiting.empty()) {
    if (to.sent.empty()) dialing.erase(at);
    return;
  }
  auto& next = *find_vc(to.waiting.extract(to.waiting.begin()).value());
  dial(next, now);
}

// An RC was answered or has ended: the listener may have a place for the oldest unanswered one.
void Node::Impl::hurry(Dialing& to, Time now) {
  auto& oldest = *find_vc(*to.sent.begin());
  const auto sent = std::max(oldest.handshake.sent(), to.hurried);
  if (now < sent + RoundTrip::kInitial) return;
  to.hurried = now;
  send_request_connection(oldest);
}

Node::Impl::ListenerName Node::Impl::listener_of(const Vc& vc) {
  return {vc.endpoint->owner_id, vc.peer_mac, vc.peer_uport};
}

}  // namespace stp
