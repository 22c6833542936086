// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/port_rates.h"

#include <algorithm>
#include <utility>

#include "stp/base/work_meter.h"

namespace stp {
namespace {

// Limits of one call: places whose time has come, and Ports of a place that have ended meanwhile.
constexpr unsigned kMostPlacesDue = 32, kMostEndedPorts = 32;

}  // namespace

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
