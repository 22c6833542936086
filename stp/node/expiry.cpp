// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/expiry.h"

#include <algorithm>
#include <cerrno>

namespace stp {
namespace {

// Limits of one turn: connections with due timers, and Blocks checked of each.
constexpr std::size_t kMostExpired = 128, kBlocksOfExpiry = 32;

}  // namespace

Time Expiry::next_deadline() const {
  const bool more = use_.common.unfinished || use_.tidying.untidy();
  return std::min({use_.timers.next(), use_.wake_ups.deadline(), use_.pacing.deadline(),
                   more ? use_.common.seen : kNever});
}

void Expiry::expire(Time now) {
  use_.common.seen = now;
  use_.common.unfinished = false;
  use_.departures.start_clocks(use_.vcs, now);
  use_.pacing.expire(now);
  use_.tidying.turn();
  // The rest stay due and come in the next turn.
  for (auto left = kMostExpired; left > 0 && use_.timers.next() <= now;) {
    auto& vc = use_.timers.first();
    const auto id = vc.id;
    work::count("timers");
    left -= std::min(left, 1 + expire(vc, now) / kBlocksOfExpiry);
    if (auto* const still = use_.vcs.find(id)) use_.timers.renew(*still);
  }
}

// Returns the number of Blocks examined.
std::size_t Expiry::expire(Vc& vc, Time now) {
  if (!use_.endings.repeat(vc, now) || !use_.listeners.still_decides(vc, now)) return 0;
  if (vc.state != VcState::kOpen) return 0;
  if (now >= vc.draining.deadline()) return use_.endings.begin(vc, now), 0;
  if (!use_.states.repeat(vc, now)) {
    use_.endings.fail(vc, VcEvent::kGaveUp, -ETIMEDOUT, now);
    return 0;
  }
  const auto looked = use_.recovery.check(vc, now);
  use_.states.ask_when_due(vc, now);
  return looked;
}

}  // namespace stp
