// SPDX-License-Identifier: BSD-3-Clause
#include "stp/engine/held_grants.h"

#include <algorithm>

namespace stp {

bool HeldGrants::contains(const Transfer& transfer, std::uint32_t b_num) const {
  auto const found = transfers_.find(transfer);
  if (found == transfers_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(),
                     [b_num](const Held& held) { return held.entry.header.b_num == b_num; });
}

void HeldGrants::push(const Transfer& transfer, const SendEntry& entry,
                      const Inbound::Demand& demand) {
  auto& queue = transfers_[transfer];
  queue.push_back({entry, demand, ++last_serial_});
  if (queue.size() == 1) enter(transfer, queue.front());
}

SendEntry HeldGrants::pop(const Transfer& transfer) {
  auto const found = transfers_.find(transfer);
  auto& queue = found->second;
  auto const entry = queue.front().entry;
  leave(transfer, queue.front());
  queue.pop_front();
  if (queue.empty())
    transfers_.erase(found);
  else
    enter(transfer, queue.front());
  return entry;
}

std::uint32_t HeldGrants::drop(const Transfer& transfer) {
  auto const found = transfers_.find(transfer);
  if (found == transfers_.end()) return 0;
  auto const count = static_cast<std::uint32_t>(found->second.size());
  leave(transfer, found->second.front());
  transfers_.erase(found);
  return count;
}

std::uint32_t HeldGrants::drop(VcId vc) {
  std::uint32_t count = 0;
  for (auto next = transfers_.lower_bound({vc, 0}); next != transfers_.end();) {
    auto const transfer = (next++)->first;
    if (transfer.first != vc) break;
    count += drop(transfer);
  }
  return count;
}

void HeldGrants::enter(const Transfer& transfer, const Held& first) {
  by_remaining_.emplace(first.demand.remaining, first.serial, transfer);
  by_age_.emplace(first.serial, transfer);
}

void HeldGrants::leave(const Transfer& transfer, const Held& first) {
  by_remaining_.erase({first.demand.remaining, first.serial, transfer});
  by_age_.erase({first.serial, transfer});
}

}  // namespace stp
