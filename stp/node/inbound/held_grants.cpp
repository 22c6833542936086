// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/held_grants.h"

#include "stp/base/assert.h"

namespace stp {

bool HeldGrants::contains(const Transfer& transfer, std::uint32_t b_num) const {
  const auto of = vcs_.find(transfer.first);
  if (of == vcs_.end()) return false;
  const auto queue = of->second.transfers.find(transfer.second);
  return queue != of->second.transfers.end() && queue->second.numbers.contains(b_num);
}

void HeldGrants::push(const Transfer& transfer, std::uint64_t owner, const SendEntry& entry,
                      const Inbound::Demand& demand) {
  const auto [vc, r_id] = transfer;
  STP_ASSERT(!contains(transfer, entry.header.b_num), "a CTS is held once");
  auto& of = vcs_[vc];
  STP_ASSERT(of.count == 0 || of.owner == owner, "a connection has one owner");
  of.owner = owner;
  leave(vc, of);
  auto& queue = of.transfers[r_id];
  queue.grants.push_back({entry, demand, ++last_serial_});
  queue.numbers.insert(entry.header.b_num);
  if (queue.grants.size() == 1) of.order.enter(queue.grants.front(), r_id);
  ++of.count;
  enter(vc, of);
}

SendEntry HeldGrants::pop(const Transfer& transfer) {
  const auto [vc, r_id] = transfer;
  const auto at = vcs_.find(vc);
  STP_ASSERT(at != vcs_.end() && !at->second.parked, "a CTS goes of a connection with credit");
  auto& of = at->second;
  leave(vc, of);
  const auto found = of.transfers.find(r_id);
  STP_ASSERT(found != of.transfers.end() && !found->second.grants.empty(),
             "a Transfer whose CTS goes has one");
  auto& queue = found->second;
  const auto entry = queue.grants.front().entry;
  of.order.leave(queue.grants.front(), r_id);
  queue.numbers.erase(entry.header.b_num);
  queue.grants.pop_front();
  STP_ASSERT(queue.grants.size() == queue.numbers.size(), "each CTS that is held has its number");
  if (queue.grants.empty())
    of.transfers.erase(found);
  else
    of.order.enter(queue.grants.front(), r_id);
  if (--of.count == 0)
    vcs_.erase(at);
  else
    enter(vc, of);
  return entry;
}

std::uint32_t HeldGrants::drop(const Transfer& transfer) {
  const auto [vc, r_id] = transfer;
  const auto at = vcs_.find(vc);
  if (at == vcs_.end()) return 0;
  auto& of = at->second;
  const auto found = of.transfers.find(r_id);
  if (found == of.transfers.end()) return 0;
  leave(vc, of);
  const auto count = static_cast<std::uint32_t>(found->second.grants.size());
  of.order.leave(found->second.grants.front(), r_id);
  dropped_.push_back(of.transfers.extract(found));
  STP_ASSERT(count > 0 && count <= of.count, "a connection counts the CTS of its Transfers");
  of.count -= count;
  STP_ASSERT((of.count == 0) == of.transfers.empty(), "a connection without CTS has no Transfers");
  if (of.count == 0)
    vcs_.erase(at);
  else
    enter(vc, of);
  return count;
}

std::uint32_t HeldGrants::drop(VcId vc) {
  const auto at = vcs_.find(vc);
  if (at == vcs_.end()) return 0;
  leave(vc, at->second);
  const auto count = at->second.count;
  dropped_vcs_.push_back(vcs_.extract(at));
  return count;
}

std::size_t HeldGrants::tidy(std::size_t most) {
  std::size_t done = 0;
  const auto take_down = [&](Queue& queue) {
    for (; done < most && !queue.grants.empty(); ++done) {
      queue.numbers.erase(queue.grants.back().entry.header.b_num);
      queue.grants.pop_back();
    }
    return queue.grants.empty();
  };
  while (done < most && !dropped_.empty())
    if (take_down(dropped_.back().mapped())) dropped_.pop_back();
  while (done < most && !dropped_vcs_.empty()) {
    auto& of = dropped_vcs_.back().mapped();
    if (of.transfers.empty()) {
      dropped_vcs_.pop_back();
      continue;
    }
    const auto first = of.transfers.begin();
    of.order.leave(first->second.grants.front(), first->first);
    if (take_down(first->second)) of.transfers.erase(first);
  }
  work::count("CTS that were held", done);
  return done;
}

void HeldGrants::unpark(VcId vc) {
  const auto at = vcs_.find(vc);
  if (at == vcs_.end() || !at->second.parked) return;
  at->second.parked = false;
  enter(vc, at->second);
}

void HeldGrants::enter(VcId vc, const OfVc& of) {
  if (of.parked) return;
  auto& owner = owners_[of.owner];
  const auto& next = first_of(of, false);
  owner.by_remaining.emplace(next.demand.remaining, next.serial, vc);
  owner.by_age.emplace(first_of(of, true).serial, vc);
}

void HeldGrants::leave(VcId vc, const OfVc& of) {
  if (of.parked || of.count == 0) return;
  const auto at = owners_.find(of.owner);
  STP_ASSERT(at != owners_.end(), "a connection that is not parked stands with its owner");
  const auto& next = first_of(of, false);
  at->second.by_remaining.erase({next.demand.remaining, next.serial, vc});
  at->second.by_age.erase({first_of(of, true).serial, vc});
  STP_ASSERT(at->second.by_age.size() == at->second.by_remaining.size(),
             "a connection stands in both orders of its owner or in none");
  if (at->second.by_age.empty()) owners_.erase(at);
}

}  // namespace stp
