// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/dials.h"

#include <algorithm>
#include <utility>

#include "stp/node/shards.h"

namespace stp {
namespace {

// The listener leaves further RCs unanswered, and their repeats come at ever longer intervals:
// without hurry() younger RCs would take every free place. The shards of an address divide them.
constexpr unsigned kMaxUnanswered = 16;
static_assert(Shards::kMost <= kMaxUnanswered, "each shard may ask");
// A waiting RC is given up no sooner than one that has left.
constexpr Time kTurnPatience = ((1U << Retry::kTries) - 1) * RoundTrip::kInitial;

}  // namespace

Dials::Dials(const Uses& uses)
    : use_(uses),
      most_(kMaxUnanswered /
            (uses.common.config.shards != nullptr ? uses.common.config.shards->count() : 1)) {}

void Dials::begin(Vc& vc, Time now) {
  auto& to = dialing_[listener_of(vc)];
  const auto patience = vc.endpoint->config.connect_patience;
  if (to.sent.size() == most_) {
    vc.dial.state_ = DialState::State::kWaits;
    to.waiting.insert(vc.id);
    vc.handshake.start(now, std::max(patience, kTurnPatience), 0, 1);
    return use_.timers.update(vc);
  }
  to.sent.insert(vc.id);
  vc.dial.state_ = DialState::State::kSent;
  const auto waited = now - vc.heard;
  // protocol: 5.31
  vc.handshake.start(now, RoundTrip::kInitial, patience - std::min(patience, waited));
  use_.departures.leaves(vc, NodeDepartures::kHandshakeClock);
  send(vc);
  use_.timers.update(vc);
}

void Dials::end(Vc& vc, Time now) {
  const auto was = std::exchange(vc.dial.state_, DialState::State::kNone);
  if (was == DialState::State::kNone) return;
  const auto at = dialing_.find(listener_of(vc));
  STP_ASSERT(at != dialing_.end(), "an RC that has begun is one of its listener's");
  auto& to = at->second;
  if (was == DialState::State::kWaits) {
    to.waiting.erase(vc.id);
    return;
  }
  to.sent.erase(vc.id);
  if (!to.sent.empty()) hurry(to, now);
  if (to.waiting.empty()) {
    if (to.sent.empty()) dialing_.erase(at);
    return;
  }
  auto& next = *use_.vcs.find(to.waiting.extract(to.waiting.begin()).value());
  begin(next, now);
}

// An RC was answered or has ended: the listener may have a place for the oldest unanswered one.
void Dials::hurry(Dialing& to, Time now) {
  auto& oldest = *use_.vcs.find(*to.sent.begin());
  const auto sent = std::max(oldest.handshake.sent(), to.hurried);
  if (now < sent + RoundTrip::kInitial) return;
  to.hurried = now;
  send(oldest);
}

Dials::ListenerName Dials::listener_of(const Vc& vc) {
  return {vc.endpoint->owner_id, vc.peer_mac, vc.peer_uport};
}

// protocol: 3.14
void Dials::send(const Vc& vc) {
  const wire::RequestConnection rc{.i_slots = static_cast<std::uint16_t>(vc.channel.slots()),
                                   .i_bufsize = vc.endpoint->config.bufsize,
                                   .i_key = vc.local_key,
                                   .i_max_stu = vc.local_max_stu,
                                   .r_uport = vc.peer_uport};
  auto h = wire::to_header(rc);
  h.s_port = vc.local_port;
  use_.common.answer(vc, h, vc.option);
}

}  // namespace stp
