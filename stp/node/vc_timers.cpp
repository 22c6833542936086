// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/vc_timers.h"

#include <algorithm>
#include <utility>

#include "stp/base/work_meter.h"

namespace stp {

void NodeDepartures::start(const PortTable& vcs, Time now) {
  work::count("clocks that begin", left_.size());
  for (const auto id : left_) {
    auto* const vc = vcs.find(id);
    if (vc == nullptr) continue;
    const auto clocks = std::exchange(vc->departing.clocks_, std::uint8_t{0});
    if ((clocks & kHandshakeClock) != 0) vc->handshake.left(now);
    if ((clocks & kAskClock) != 0) vc->questions.left(now);
    if ((clocks & kGrantClock) != 0) vc->recovery.grant_left(now);
  }
  left_.clear();
}

Time VcTimers::deadline_of(const Vc& vc) {
  auto next = std::min({vc.handshake.deadline(), vc.proof.deadline(), vc.questions.deadline(),
                        vc.recovery.deadline(), vc.draining.deadline(),
                        vc.decision.deadline(vc.heard), proof_deadline(vc)});
  if (keeps_alive(vc) && !vc.questions.is_open()) next = std::min(next, vc.heard + kKeepAlive);
  return next;
}

void VcTimers::update(Vc& vc) {
  const auto wanted = deadline_of(vc);
  if (wanted < vc.deadline || wanted == kNever) heap_.set(vc, wanted);
}

}  // namespace stp
