// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/pacing.h"

#include <algorithm>
#include <utility>

#include "stp/base/assert.h"

namespace stp {

bool HeldGrants::contains(const Transfer& transfer, std::uint32_t b_num) const {
  const auto of = vcs_.find(transfer.first);
  if (of == vcs_.end()) return false;
  const auto queue = of->second.transfers.find(transfer.second);
  return queue != of->second.transfers.end() && queue->second.numbers.contains(b_num);
}

bool HeldGrants::contains(const Transfer& transfer) const {
  const auto of = vcs_.find(transfer.first);
  return of != vcs_.end() && of->second.transfers.contains(transfer.second);
}

void HeldGrants::push(const Transfer& transfer, std::uint64_t owner, const Held& held) {
  auto& of = open(transfer, owner, held);
  auto& queue = of.transfers[transfer.second];
  queue.grants.push_back(held);
  queue.grants.back().serial = ++last_serial_;
  if (queue.grants.size() == 1) of.order.enter(queue.grants.front(), transfer.second);
  enter(transfer.first, of);
}

void HeldGrants::put_back(const Transfer& transfer, std::uint64_t owner, const Held& held) {
  auto& of = open(transfer, owner, held);
  auto& queue = of.transfers[transfer.second];
  if (!queue.grants.empty()) of.order.leave(queue.grants.front(), transfer.second);
  queue.grants.push_front(held);
  of.order.enter(held, transfer.second);
  enter(transfer.first, of);
}

// Its connection, which stands in no order until enter(), and knows that there is one more.
HeldGrants::OfVc& HeldGrants::open(const Transfer& transfer, std::uint64_t owner,
                                   const Held& held) {
  const auto [vc, r_id] = transfer;
  const auto b_num = held.entry.header.b_num;
  STP_ASSERT(!contains(transfer, b_num), "a CTS is held once");
  auto& of = vcs_[vc];
  STP_ASSERT(of.count == 0 || of.owner == owner, "a connection has one owner");
  of.owner = owner;
  leave(vc, of);
  of.transfers[r_id].numbers.insert(b_num);
  ++of.count;
  return of;
}

HeldGrants::Held HeldGrants::pop(const Transfer& transfer) {
  const auto [vc, r_id] = transfer;
  const auto at = vcs_.find(vc);
  STP_ASSERT(at != vcs_.end() && !at->second.parked, "a CTS goes of a connection with credit");
  auto& of = at->second;
  leave(vc, of);
  const auto found = of.transfers.find(r_id);
  STP_ASSERT(found != of.transfers.end() && !found->second.grants.empty(),
             "a Transfer whose CTS goes has one");
  auto& queue = found->second;
  const auto held = queue.grants.front();
  of.order.leave(queue.grants.front(), r_id);
  queue.numbers.erase(held.entry.header.b_num);
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
  return held;
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

namespace {

// Held CTS of one owner, and of each of its connections besides, and of all of them together;
// further CTS are not held.
// protocol: 10.8
constexpr std::uint32_t kMaxHeld = 4096, kMaxHeldOfVc = 128, kMaxHeldInAll = 32'768;
constexpr std::uint64_t kOldestEvery = 8;  // every so many releases, age goes before size
// Grants without any arrival for kGrantPatience no longer delay others. Their sender may have
// reasons to wait that others cannot know. It may also have waited for a core, and send all of it
// at once: until kSilence has passed, no more than the limit is written off.
// protocol: 10.12
constexpr Time kGrantPatience = 20 * kMillisecond, kSilence = kSecond;
constexpr unsigned kMostLooks = 32;  // connections checked per call
constexpr std::size_t kHeldTidiedAtOnce = 64;

bool may_hold(std::uint32_t held_of_owner, std::uint32_t held_of_vc) {
  return held_of_owner < kMaxHeld || (held_of_owner < kMaxHeldInAll && held_of_vc < kMaxHeldOfVc);
}

HeldGrants::Transfer transfer_of(const Vc& vc, const SendEntry& entry) {
  return {vc.id, entry.header.s_id};
}

Inbound::Demand demand_of(const Vc& vc, const SendEntry& entry) {
  return vc.inbound.demand(wire::decode_as<wire::ClearToSend>(entry.header),
                           entry.limited == kInParts);
}

// The STUs of a part of `path` that is one of `bytes`. As many as one CTS can name at most.
// protocol: 13.13, 13.19
std::uint32_t part_of(const Vc& vc, const Path& path, std::uint64_t bytes) {
  const auto stu_log2 = vc.inbound.tiles().stu_log2;
  const auto suits = path.part() >> stu_log2;
  const auto most = (bytes + (std::uint64_t{1} << stu_log2) - 1) >> stu_log2;
  return static_cast<std::uint32_t>(
      std::min({std::max<std::uint64_t>(suits, 1), most, std::uint64_t{wire::MissingStus::kMost}}));
}

// The CTS `entry`, or as much of it as goes at once.
HeldGrants::Held all_or_part(const Vc& vc, const SendEntry& entry, const Inbound::Demand& demand) {
  HeldGrants::Held held{.entry = entry, .demand = demand};
  const auto* const path = vc.inbound.account().path();
  if (entry.limited != kInParts || path == nullptr) return held;
  const auto part = part_of(vc, *path, demand.bytes);
  const auto bytes = std::uint64_t{part} << vc.inbound.tiles().stu_log2;
  if (bytes >= demand.bytes) return held;
  held.part = part;
  held.demand.bytes = bytes;
  return held;
}

}  // namespace

GrantAccount Pacing::account(Vc& vc, unsigned stu_log2) {
  return {sums_, vc.endpoint->owner->granted, max_stu_ - stu_log2};
}

Path& Pacing::share_path(Vc& vc) {
  const auto stu = std::uint64_t{1} << vc.inbound.tiles().stu_log2;
  auto& path = vc.inbound.account().join(paths_.find(vc.peer_mac, stu));
  vc.channel.suggest_block(path.block_log2());
  if (vc.marks == Marks::kHeeded) vc.marks = Marks::kWanted;
  return path;
}

bool Pacing::hold(Vc& vc, const SendEntry& entry, Time now) {
  const auto& h = entry.header;
  if (is_off() || vc.connectionless()) return false;
  if (h.param < wire::kMinBlocksize || h.param > wire::kMaxBlocksize) return false;  // refused next
  if (held_.contains(transfer_of(vc, entry), h.b_num)) return true;
  write_off(now);
  const auto demand = demand_of(vc, entry);
  const auto& owner = *vc.endpoint->owner;
  if (demand.bytes == 0 || !may_hold(owner.held, vc.paced.held_)) return false;
  const auto held = all_or_part(vc, entry, demand);
  auto* const path = vc.inbound.account().path();
  // None passes those of its Transfer that wait already, which would wait for ever.
  const bool passes = vc.paced.held_ != 0 && held_.contains(transfer_of(vc, entry));
  const bool has_room = path == nullptr || (path->has_room(held.demand.bytes) && path->is_due(now));
  const bool goes = !passes && fits_memory(vc, held.demand.bytes) && has_room;
  if (goes && held.part == 0) {
    if (path != nullptr) path->leaves(demand.bytes, now);
    return false;
  }
  // The parts of a Block leave from here, the first one at once.
  sums_.look_again = true;
  may_go_ = may_go_ || goes;
  if (!goes) counters_.add(Counter::kCtsHeld);
  hold(vc, held);
  return true;
}

bool Pacing::hold_for_memory(Vc& vc, const SendEntry& entry, Time now) {
  if (held_.contains(transfer_of(vc, entry), entry.header.b_num)) return true;
  if (!may_hold(vc.endpoint->owner->held, vc.paced.held_)) return false;
  look_at_memory_by(now + kGrantPatience);
  counters_.add(Counter::kCtsHeld);
  hold(vc, {.entry = entry, .demand = demand_of(vc, entry)});
  return true;
}

void Pacing::hold(Vc& vc, const HeldGrants::Held& held) {
  held_.push(transfer_of(vc, held.entry), vc.endpoint->owner_id, held);
  ++vc.paced.held_;
  ++vc.endpoint->owner->held;
}

void Pacing::hold_again(const Grant& grant, Time now) {
  const auto& entry = grant.held.entry;
  hold(grant.vc, all_or_part(grant.vc, entry, demand_of(grant.vc, entry)));
  look_at_memory_by(now + kGrantPatience);
}

void Pacing::hold_rest(const Grant& grant, std::uint64_t left) {
  auto& vc = grant.vc;
  auto held = grant.held;
  held.part = part_of(vc, *vc.inbound.account().path(), left);
  held.demand = {.bytes = std::min(std::uint64_t{held.part} << vc.inbound.tiles().stu_log2, left),
                 .remaining = std::max(held.demand.remaining - held.demand.bytes, left)};
  held_.put_back(transfer_of(vc, held.entry), vc.endpoint->owner_id, held);
  ++vc.paced.held_;
  ++vc.endpoint->owner->held;
  sums_.look_again = true;
}

// Forgets finished Transfers of other connections of an owner that lacks memory.
void Pacing::forget_idle_transfers() {
  constexpr unsigned kLooks = 512, kForgotten = 16;
  for (unsigned looks = 0, forgotten = 0; looks < kLooks && forgotten < kForgotten; ++looks) {
    work::count("connections that may remember less");
    idle_look_ = (idle_look_ + 1) % vcs_.places();
    auto* const vc = vcs_.at(static_cast<std::uint16_t>(idle_look_));
    if (vc == nullptr || !vc->endpoint->owner->windows->is_short()) continue;
    while (forgotten < kForgotten && vc->inbound.forget_oldest()) ++forgotten;
  }
}

void Pacing::begin_burst(Time now) {
  if (now >= memory_look_) forget_idle_transfers();
  if (memory_freed_ || now >= memory_look_) sums_.look_again = true;
  memory_freed_ = may_go_ = false;
  if (now >= memory_look_) memory_look_ = kNever;
  look_at_paths(now);
}

// The connections whose CTS wait for a path take turns.
// protocol: 13.9, 13.18
void Pacing::look_at_paths(Time now) {
  auto& roomy = paths_.roomy();
  auto& due = paths_.due();
  for (auto left = kMostLooks; left > 0 && due.next() <= now; --left) {
    work::count("paths whose next CTS is due");
    auto& path = static_cast<Path&>(*due.first());
    due.remove(path);
    path.look();
  }
  if (roomy.empty()) return;
  for (auto left = kMostLooks; left > 0 && !roomy.empty(); --left) {
    auto& path = roomy.front();
    work::count("connections that wait for a path");
    const auto id = path.next(now);
    if (id == kNoneId && path.waits() && !path.is_due(now)) due.set(path, path.due());
    auto* const vc = vcs_.find(id);
    if (vc == nullptr) continue;
    vc->paced.waits_ = false;
    if (vc->paced.held_ != 0) held_.unpark(id);
  }
  sums_.look_again = true;
}

// Whether a CTS of `vc` for `bytes` may go along its path now. If not, the connection waits there.
// protocol: 13.9, 13.18
bool Pacing::path_takes(Vc& vc, std::uint64_t bytes, Time now) {
  auto* const path = vc.inbound.account().path();
  if (path == nullptr) return true;
  const bool has_room = path->has_room(bytes);
  if (has_room && path->is_due(now)) return true;
  if (!std::exchange(vc.paced.waits_, true)) path->wait(vc.id, bytes);
  if (has_room) paths_.due().set(*path, path->due());
  return false;
}

std::optional<Pacing::Grant> Pacing::next(unsigned& left, Time now) {
  while (left > 0 && !held_.empty() && (sums_.look_again || has_room())) {
    --left;
    auto least = ~std::uint64_t{0}, least_beyond = least;
    Vc* starved = nullptr;
    std::uint64_t lacks = 0;
    const auto chosen =
        held_.choose(releases_ % kOldestEvery == 0, [&](VcId id, const Inbound::Demand& demand) {
          auto* const vc = vcs_.find(id);
          if (vc == nullptr || !vc->credit.available()) return HeldGrants::Fit::kNoRoom;
          if (!vc->inbound.has_room(demand.memory)) {
            look_at_memory_by(now + kGrantPatience);
            if (starved == nullptr) {
              starved = vc;
              lacks = demand.memory;
            }
            return HeldGrants::Fit::kTooMuch;
          }
          if (!path_takes(*vc, demand.bytes, now)) return HeldGrants::Fit::kNoRoom;
          const auto& account = vc->inbound.account();
          const auto charge = account.charge_of(demand.bytes);
          least = std::min(least, charge);
          if (account.may_go_beyond(demand.bytes)) least_beyond = std::min(least_beyond, charge);
          return fits_memory(*vc, demand.bytes) ? HeldGrants::Fit::kFits
                                                : HeldGrants::Fit::kTooMuch;
        });
    if (!chosen) {
      // Finished Transfers of its own connection are forgotten first.
      if (sums_.look_again && starved != nullptr && starved->inbound.has_memory(lacks)) continue;
      sums_.look_again = false;
      least_ = least;
      least_beyond_ = least_beyond;
      return std::nullopt;
    }
    ++releases_;
    auto& vc = *vcs_.find(chosen->first);
    --vc.paced.held_;
    --vc.endpoint->owner->held;
    const Grant grant{vc, held_.pop(*chosen)};
    const auto& held = grant.held;
    if (auto* const path = vc.inbound.account().path(); path != nullptr)
      path->leaves(held.part != 0 ? held.demand.bytes : demand_of(vc, held.entry).bytes, now);
    return grant;
  }
  return std::nullopt;
}

void Pacing::has_credit(Vc& vc) {
  if (vc.paced.held_ == 0) return;
  held_.unpark(vc.id);
  sums_.look_again = true;
}

void Pacing::drop(Vc& vc) {
  if (vc.paced.held_ == 0) return;
  vc.endpoint->owner->held -= held_.drop(vc.id);
  vc.paced.held_ = 0;
  held_.tidy(kHeldTidiedAtOnce);
}

void Pacing::drop(Vc& vc, std::uint32_t r_id) {
  if (vc.paced.held_ == 0) return;
  const auto count = held_.drop(HeldGrants::Transfer{vc.id, r_id});
  vc.paced.held_ -= count;
  vc.endpoint->owner->held -= count;
  held_.tidy(kHeldTidiedAtOnce);
}

void Pacing::watch(Vc& vc, Time now) {
  if (is_off() || vc.in<IsWatched>()) return;
  vc.paced.look_at_ = now + kGrantPatience;
  watched_.push_back(vc);
}

// What was asked for a moment ago cannot have come over a long path, and nobody knows how long a
// path is before something has come.
Time Pacing::patience(const Vc& vc) {
  const auto* const path = vc.inbound.account().path();
  if (path == nullptr) return kGrantPatience;
  const auto round_trip = path->round_trip();
  return round_trip == 0 ? kSilence : std::max(kGrantPatience, 4 * round_trip);
}

void Pacing::expire(Time now) {
  write_off(now);
  look_at_paths(now);
}

void Pacing::write_off(Time now) {
  for (auto left = kMostLooks;
       left > 0 && !watched_.empty() && watched_.front().paced.look_at_ <= now; --left) {
    auto& vc = watched_.pop_front();
    work::count("connections whose grants are watched");
    if (vc.inbound.outstanding() == 0) continue;
    const auto silence = now - vc.inbound.open_blocks().silent_since();
    if (silence >= std::max(kSilence, patience(vc))) {
      vc.inbound.account().forget();
    } else if (silence >= patience(vc)) {
      vc.inbound.account().write_off(sums_.limit.is_none() ? kNever : sums_.limit.most());
    }
    vc.paced.look_at_ = now + kGrantPatience;
    watched_.push_back(vc);
  }
}

Time Pacing::deadline_of_held() const {
  if (may_go_ || !paths_.roomy().empty()) return 0;
  const auto look = std::min(memory_look_, paths_.due().next());
  return watched_.empty() ? look : std::min(watched_.front().paced.look_at_, look);
}

}  // namespace stp
