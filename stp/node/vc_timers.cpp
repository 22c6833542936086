// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/vc_timers.h"

#include <algorithm>

namespace stp {

Time VcTimers::deadline_of(const Vc& vc) {
  auto next =
      std::min({vc.handshake.deadline(), vc.proof.deadline(), vc.questions.deadline(),
                vc.recovery.deadline(), vc.draining.deadline(), vc.decision.deadline(vc.heard)});
  if (keeps_alive(vc) && !vc.questions.is_open()) next = std::min(next, vc.heard + kKeepAlive);
  return next;
}

void VcTimers::update(Vc& vc) {
  const auto wanted = deadline_of(vc);
  if (wanted < vc.deadline || wanted == kNever) heap_.set(vc, wanted);
}

}  // namespace stp
