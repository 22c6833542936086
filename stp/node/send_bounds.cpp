// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/send_bounds.h"

#include <algorithm>
#include <utility>

#include "stp/base/work_meter.h"

namespace stp {
namespace {

// Limits of one call: connections that are queued again, and paths whose time has come; places of
// stations whose time has come, and Ports of a place that have ended meanwhile.
constexpr unsigned kMostWoken = 32, kMostPaths = 32, kMostPlacesDue = 32, kMostEndedPorts = 32;

}  // namespace

std::size_t SendBounds::room(Vc& vc, Path& path, Time now) {
  auto& window = path.sent();
  if (const auto stus = window.room(); stus != 0) return stus;
  if (!std::exchange(vc.paced.waits_to_send, true)) window.wait(vc.id);
  if (window.asks()) ask(vc, window, now);
  // As something waits now, it asks again sooner.
  if (window.is_open()) use_.pacing.paths().timers().set(window, window.patience());
  return 0;
}

void SendBounds::sent(Vc& vc, Path& path, std::uint64_t bytes, Time now) {
  auto& window = path.sent();
  window.sent(bytes);
  if (window.asks()) ask(vc, window, now);
}

// The question leaves behind what has been sent.
void SendBounds::ask(Vc& vc, SentWindow& window, Time now) {
  const wire::RequestState rs{
      .sync = use_.common.random.next(), .b_num = wire::kNoId, .r_id = wire::kNoId};
  window.ask(rs.sync, vc.id, now);
  use_.common.answer(vc, vc.header_for(rs));
  if (!window.is_set()) use_.pacing.paths().timers().set(window, window.patience());
}

bool SendBounds::answered(Vc& vc, std::uint32_t sync, Time now) {
  auto* const path = vc.inbound.account().path();
  if (path == nullptr || !path->sent().answered(sync, now)) return false;
  wake(path->sent(), now);
  return true;
}

void SendBounds::wake(SentWindow& window, Time now) {
  for (auto left = kMostWoken; left > 0 && window.waits() && window.has_room(); --left) {
    work::count("connections that wait to send");
    auto* const vc = use_.vcs.find(window.next());
    if (vc == nullptr) continue;
    vc->paced.waits_to_send = false;
    use_.turns.enter(*vc);
  }
  // The others come in the next turn.
  if (window.waits() && window.has_room()) use_.pacing.paths().timers().set(window, now);
}

void SendBounds::expire(Time now) {
  auto& timers = use_.pacing.paths().timers();
  for (auto left = kMostPaths; left > 0 && timers.next() <= now; --left) {
    work::count("paths whose time has come");
    expire(static_cast<SentWindow&>(*timers.first()), now);
  }
}

void SendBounds::expire(SentWindow& window, Time now) {
  auto& timers = use_.pacing.paths().timers();
  timers.remove(window);
  wake(window, now);
  if (window.is_set() || !window.is_open()) return;
  if (now < window.patience()) return timers.set(window, window.patience());
  window.silent(now);
  auto* const vc = asker(window);
  if (vc != nullptr) return ask(*vc, window, now);
  window.give_up();
  wake(window, now);
}

// Who may ask once more; nullptr: none of those that were looked at.
Vc* SendBounds::asker(SentWindow& window) {
  const auto may_ask = [](const Vc* vc) { return vc != nullptr && vc->state == VcState::kOpen; };
  auto* vc = use_.vcs.find(window.asker());
  for (auto left = kMostWoken; left > 0 && !may_ask(vc) && window.waits(); --left) {
    work::count("connections that wait to send");
    vc = use_.vcs.find(window.next());
    if (vc == nullptr) continue;
    vc->paced.waits_to_send = false;
    use_.turns.enter(*vc);
  }
  return may_ask(vc) ? vc : nullptr;
}

// ---- the rate of Ports

bool PortRates::may_send(Vc& vc, const MacAddr& station, Time now) {
  const auto place = place_of(station);
  if (has_budget_at(place) <= now || !is_bounded(station)) return true;
  if (std::exchange(vc.paced.waits_to_send, true)) return false;
  use_.common.counters.add(Counter::kPortHeld);
  auto& ports = waiting_[place];
  if (ports.empty()) due_.emplace(has_budget_at(place), place);
  ports.push_back(vc.id);
  return false;
}

void PortRates::sent(const MacAddr& station, std::uint64_t bytes, Time now) {
  if (!is_bounded(station)) return;
  auto& until = spent_until_[place_of(station)];
  until = std::max(until, now) + bytes * kPeriod / kBudget;
}

// One Port of a place at a time, because its frame may use up the budget. The next one has its turn
// when that frame has left.
void PortRates::expire(Time now) {
  for (auto left = kMostPlacesDue; left > 0 && deadline() <= now; --left) {
    work::count("places of stations");
    const auto place = due_.extract(due_.begin()).value().second;
    const auto at = waiting_.find(place);
    if (has_budget_at(place) <= now) wake_first(at->second);
    if (at->second.empty())
      waiting_.erase(at);
    else
      due_.emplace(std::max(has_budget_at(place), now + 1), place);
  }
}

void PortRates::wake_first(std::deque<VcId>& ports) {
  for (auto left = kMostEndedPorts; left > 0 && !ports.empty(); --left) {
    work::count("Ports that wait to send");
    auto* const vc = use_.vcs.find(ports.front());
    ports.pop_front();
    if (vc == nullptr) continue;
    vc->paced.waits_to_send = false;
    return use_.turns.enter(*vc);
  }
}

}  // namespace stp
