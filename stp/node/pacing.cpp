// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/pacing.h"

#include <algorithm>
#include <utility>

namespace stp {
namespace {

constexpr std::uint32_t kMaxHeld = 4096;   // held CTS of one owner; further CTS are not held
constexpr std::uint64_t kOldestEvery = 8;  // every so many releases, age goes before size
// Grants without any arrival for kGrantPatience no longer delay others. Their sender may have
// reasons to wait that others cannot know. It may also have waited for a core, and send all of it
// at once: until kSilence has passed, no more than the limit is written off.
// protocol: 10.12
constexpr Time kGrantPatience = 20 * kMillisecond, kSilence = kSecond;
constexpr unsigned kMostLooks = 32;  // connections checked per call
constexpr std::size_t kTidiedAtOnce = 64;

HeldGrants::Transfer transfer_of(const Vc& vc, const SendEntry& entry) {
  return {vc.id, entry.header.s_id};
}

Inbound::Demand demand_of(const Vc& vc, const SendEntry& entry) {
  return vc.inbound.demand(wire::decode_as<wire::ClearToSend>(entry.header));
}

}  // namespace

GrantAccount Pacing::account(Vc& vc, unsigned stu_log2) {
  auto path = routed_ ? paths_.find(vc.peer_mac, std::uint64_t{1} << stu_log2) : nullptr;
  return {sums_, vc.endpoint->owner->granted, max_stu_ - stu_log2, std::move(path)};
}

bool Pacing::hold(Vc& vc, const SendEntry& entry, Time now) {
  const auto& h = entry.header;
  if ((limit_ == 0 && !routed_) || vc.connectionless()) return false;
  if (h.param < wire::kMinBlocksize || h.param > wire::kMaxBlocksize) return false;  // refused next
  if (held_.contains(transfer_of(vc, entry), h.b_num)) return true;
  write_off(now);
  const auto demand = demand_of(vc, entry);
  const auto& owner = *vc.endpoint->owner;
  if (demand.charge == 0 || owner.held == kMaxHeld) return false;
  const auto* const path = vc.inbound.account().path();
  if (fits_memory(owner, demand.charge) && (path == nullptr || path->has_room(demand.bytes)))
    return false;
  sums_.look_again = true;
  hold(vc, entry, demand);
  return true;
}

bool Pacing::hold_for_memory(Vc& vc, const SendEntry& entry, Time now) {
  if (vc.endpoint->owner->held == kMaxHeld) return false;
  if (held_.contains(transfer_of(vc, entry), entry.header.b_num)) return true;
  look_at_memory_by(now + kGrantPatience);
  hold(vc, entry, demand_of(vc, entry));
  return true;
}

void Pacing::hold(Vc& vc, const SendEntry& entry, const Inbound::Demand& demand) {
  counters_.add(Counter::kCtsHeld);
  held_.push(transfer_of(vc, entry), vc.endpoint->owner_id, entry, demand);
  ++vc.paced.held_;
  ++vc.endpoint->owner->held;
}

void Pacing::hold_again(const Grant& grant, Time now) {
  auto& vc = grant.vc;
  held_.push(transfer_of(vc, grant.entry), vc.endpoint->owner_id, grant.entry,
             demand_of(vc, grant.entry));
  ++vc.paced.held_;
  ++vc.endpoint->owner->held;
  look_at_memory_by(now + kGrantPatience);
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
  memory_freed_ = false;
  if (now >= memory_look_) memory_look_ = kNever;
  if (!paths_.roomy().empty()) look_at_paths();
}

// The connections whose CTS wait for room on a path take turns.
// protocol: 13.9
void Pacing::look_at_paths() {
  auto& roomy = paths_.roomy();
  for (auto left = kMostLooks; left > 0 && !roomy.empty(); --left) {
    auto& path = roomy.front();
    work::count("connections that wait for a path");
    const auto id = path.next();
    auto* const vc = vcs_.find(id);
    if (vc == nullptr) continue;
    vc->paced.waits_ = false;
    if (vc->paced.held_ != 0) held_.unpark(id);
  }
  sums_.look_again = true;
}

std::optional<Pacing::Grant> Pacing::next(unsigned& left, Time now) {
  while (left > 0 && !held_.empty() && (sums_.look_again || sums_.charged <= release_from_)) {
    --left;
    auto smallest = ~std::uint64_t{0};
    Vc* starved = nullptr;
    std::uint64_t lacks = 0;
    const auto chosen =
        held_.choose(releases_ % kOldestEvery == 0, [&](VcId id, const Inbound::Demand& demand) {
          auto* const vc = vcs_.find(id);
          if (vc == nullptr || !vc->credit.available()) return HeldGrants::Fit::kNoRoom;
          const auto& owner = *vc->endpoint->owner;
          if (!vc->inbound.has_room(demand.memory)) {
            look_at_memory_by(now + kGrantPatience);
            if (starved == nullptr) {
              starved = vc;
              lacks = demand.memory;
            }
            return HeldGrants::Fit::kTooMuch;
          }
          if (auto* const path = vc->inbound.account().path();
              path != nullptr && !path->has_room(demand.bytes)) {
            if (!std::exchange(vc->paced.waits_, true)) path->wait(id, demand.bytes);
            return HeldGrants::Fit::kNoRoom;
          }
          smallest = std::min(smallest, demand.charge);
          return fits_memory(owner, demand.charge) ? HeldGrants::Fit::kFits
                                                   : HeldGrants::Fit::kTooMuch;
        });
    if (!chosen) {
      // Finished Transfers of its own connection are forgotten first.
      if (sums_.look_again && starved != nullptr && starved->inbound.has_memory(lacks)) continue;
      sums_.look_again = false;
      release_from_ = limit_ - std::min(smallest, limit_);
      return std::nullopt;
    }
    ++releases_;
    auto& vc = *vcs_.find(chosen->first);
    --vc.paced.held_;
    --vc.endpoint->owner->held;
    return Grant{vc, held_.pop(*chosen)};
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
  held_.tidy(kTidiedAtOnce);
}

void Pacing::drop(Vc& vc, std::uint32_t r_id) {
  if (vc.paced.held_ == 0) return;
  const auto count = held_.drop(HeldGrants::Transfer{vc.id, r_id});
  vc.paced.held_ -= count;
  vc.endpoint->owner->held -= count;
  held_.tidy(kTidiedAtOnce);
}

void Pacing::watch(Vc& vc, Time now) {
  if ((limit_ == 0 && !routed_) || vc.in<IsWatched>()) return;
  vc.paced.look_at_ = now + kGrantPatience;
  watched_.push_back(vc);
}

// What was asked for a moment ago cannot have come over a long path.
Time Pacing::patience(const Vc& vc) {
  const auto* const path = vc.inbound.account().path();
  return path == nullptr ? kGrantPatience : std::max(kGrantPatience, 4 * path->round_trip());
}

void Pacing::expire(Time now) {
  write_off(now);
  if (!paths_.roomy().empty()) look_at_paths();
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
      vc.inbound.account().write_off(limit_ == 0 ? kNever : limit_);
    }
    vc.paced.look_at_ = now + kGrantPatience;
    watched_.push_back(vc);
  }
}

Time Pacing::deadline() const {
  if (held_.empty()) return kNever;
  if (!paths_.roomy().empty()) return 0;
  return watched_.empty() ? memory_look_ : std::min(watched_.front().paced.look_at_, memory_look_);
}

}  // namespace stp
