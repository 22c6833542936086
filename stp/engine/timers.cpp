// SPDX-License-Identifier: BSD-3-Clause
// What happens when nothing happens: retries, keep-alive.
#include <algorithm>
#include <cerrno>

#include "stp/engine/impl.h"

namespace stp {
namespace {

constexpr Time kKeepAlive = 2 * kSecond;  // silence after which the peer is asked [P]

bool keeps_alive(const Vc& vc) {
  return vc.state == VcState::kOpen && vc.endpoint->config.keep_alive;
}

}  // namespace

Time Node::Impl::deadline_of(const Vc& vc) const {
  auto next = std::min({vc.handshake.deadline(), vc.ask.deadline(), vc.ask_again, vc.data_check,
                        undecided_deadline(vc)});
  if (keeps_alive(vc) && !vc.ask.running()) next = std::min(next, vc.heard + kKeepAlive);
  return next;
}

// Deadlines that have moved to later are left as they are: the timer then fires early, finds
// nothing due and is set anew. That way a frame from the peer costs no work here.
void Node::Impl::set_timer(Vc& vc) {
  auto const wanted = deadline_of(vc);
  if (wanted < vc.deadline || wanted == kNever) timers.set(vc, wanted);
}

void Node::Impl::expire(Time now) {
  write_off_grants(now);
  while (timers.next() <= now) {
    auto& vc = static_cast<Vc&>(*timers.first());
    auto const id = vc.id;
    expire_vc(vc, now);
    if (auto* const still = find_vc(id)) timers.set(*still, deadline_of(*still));
  }
}

void Node::Impl::expire_vc(Vc& vc, Time now) {
  if (vc.handshake.due(now)) {
    if (!vc.handshake.again(now)) {
      switch (auto const after = *vc_next(vc.state, VcEvent::kGaveUp)) {
        case VcState::kFailed:
          counters.add(Counter::kVcUnanswered);
          return fail(vc, -ETIMEDOUT, now);
        // protocol: 5.16
        case VcState::kPeerClosed:
          vc.state = after;
          if (vc.user_closed) return forget(vc, now);
          break;
        default:
          count_end(vc, Counter::kVcFailed);
          return forget(vc, now);
      }
    } else {
      counters.add(Counter::kRetries);
      bool const both = vc.state == VcState::kBothClosing;
      if (vc.state == VcState::kConnecting) send_request_connection(vc);
      if (both || vc.state == VcState::kClosing) send_disconnect(vc, wire::Op::kRequestDisconnect);
      if (both || vc.state == VcState::kPeerClosing)
        send_disconnect(vc, wire::Op::kDisconnectAnswer);
    }
  }
  if (now >= undecided_deadline(vc)) return end_undecided(vc, now);
  if (vc.state != VcState::kOpen) return;
  if (vc.ask.due(now)) {
    // Any frame of the peer's shows that it lives: only silence uses up the tries.
    // protocol: 5.23, 5.24
    bool const silent = now - vc.heard >= kKeepAlive;
    if (!vc.ask.again(now) && silent) return fail(vc, -ETIMEDOUT, now);
    if (!vc.ask.running()) return ask_slots(vc, false, now);
    counters.add(Counter::kRetries);
    auto h = header_for(vc, wire::Op::kRequestState);
    h.sync = vc.own_asks.newest();
    h.b_num = h.d_id = wire::kNoId;
    answer(vc.peer_mac, h, vc.endpoint->config.checksum);
  }
  if (now >= vc.data_check) recover_blocks(vc, now);
  if (now >= vc.ask_again) ask_slots(vc, false, now);
  if (keeps_alive(vc) && now >= vc.heard + kKeepAlive) ask_slots(vc, true, now);
}

}  // namespace stp
