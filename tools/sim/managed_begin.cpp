// SPDX-License-Identifier: BSD-3-Clause
// The operations that a program begins.
#include <algorithm>
#include <cerrno>

#include "tools/sim/managed.h"

namespace stp::sim {
namespace {

constexpr unsigned kMaxRegions = 2;  // that one program requests in a session
constexpr Rate kHalf = kAlways / 2, kTenth = kAlways / 10;
constexpr std::uint64_t kMaxWindow = 8;

}  // namespace

bool ManagedParty::begin_something(Time now) {
  const auto active = std::count_if(pending_.begin(), pending_.end(), [](const auto& p) {
    return p.second.kind != Kind::kReceive && p.second.kind != Kind::kServe;
  });
  if (static_cast<unsigned>(active) >= workload_.at_once) return false;
  if (dice_.chance(kTenth)) sequencer_->no_operation();
  switch (dice_.below(8)) {
    case 0:
    case 1:
    case 2:
      return begin_write(now);
    case 3:
      return begin_read(now);
    case 4:
      return dice_.chance(kTenth * 3) && end_some_region() ? true : begin_region(now);
    default:
      return begin_on_region(now);
  }
}

bool ManagedParty::started(int error, Context context, Pending pending, Time now) {
  if (error != 0) {
    if (error != -EACCES || !regions_.contains(pending.region))
      run_.verdict.fail("an operation cannot begin: " + std::to_string(error));
    release(pending);
    region_is_lost(pending.region);
    return false;
  }
  pending.since = now;
  pending.cancel = dice_.chance(workload_.cancels);
  run_.trace.note(now, [&] { return describe(context, pending, "begins", error); });
  pending_.emplace(context, pending);
  ++begun_;
  return true;
}

std::uint64_t ManagedParty::draw_length() {
  const auto stu = std::uint64_t{1} << info_.remote_max_stu;
  if (dice_.chance(kTenth)) return 0;
  if (dice_.chance(kTenth * 2) && stu < workload_.longest)  // about the size of an STU
    return std::min<std::uint64_t>(stu + dice_.between(0, 2) - 1, workload_.longest);
  return dice_.magnitude(1, workload_.longest);
}

Landing ManagedParty::landing(const Lot& lot) const {
  return {mx_, receive_memory_->address(lot), lot.length};
}

bool ManagedParty::begin_write(Time now) {
  Pending p;
  p.kind = Kind::kWrite;
  p.length = draw_length();
  p.lot = transmit_memory_->take(p.length, 1, dice_);
  if (!p.lot) return false;
  const auto context = ledger_.new_context();
  p.tag = static_cast<std::uint32_t>(context);
  p.pattern = ledger_.pattern(context);
  fill_pattern(transmit_memory_->bytes(*p.lot), p.pattern);
  ledger_.writes[p.tag].length = p.length;
  WriteOptions options;
  options.tag = p.tag;
  if (dice_.chance(kTenth)) options.flags |= wire::flag::kInterrupt;
  if (dice_.chance(kTenth)) options.flags |= wire::flag::kOrder;
  peer_->want_receive(p.length);
  return started(sequencer_->write(context, transmit_memory_->address(*p.lot), p.length, options),
                 context, p, now);
}

bool ManagedParty::begin_read(Time now) {
  Pending p;
  p.kind = Kind::kRead;
  p.length = dice_.magnitude(1, workload_.longest);
  if (ledger_.reads.contains(p.length)) return begin_write(now);
  p.lot = receive_memory_->take(p.length, 1, dice_);
  if (!p.lot) return begin_write(now);
  const auto context = ledger_.new_context();
  p.pattern = ledger_.pattern(context);
  ledger_.reads[p.length] = {p.pattern, false};
  return started(sequencer_->read(context, landing(*p.lot)), context, p, now);
}

bool ManagedParty::begin_region(Time now) {
  if (regions_begun_ == kMaxRegions || workload_.longest < 2 * RegionTruth::kWords * kWord)
    return begin_write(now);
  const auto size = RegionTruth::draw_slot_size(workload_.longest, dice_);
  const auto length = RegionTruth::length_of(size);
  if (ledger_.regions.contains(length)) return begin_write(now);
  ++regions_begun_;
  const auto context = ledger_.new_context();
  ledger_.regions[length].open(size, ledger_.pattern(context));
  Pending p;
  p.kind = Kind::kRegion;
  p.length = p.region = length;
  const auto window = static_cast<std::uint32_t>(dice_.between(1, kMaxWindow));
  return started(sequencer_->request_region(context, length, window), context, p, now);
}

bool ManagedParty::end_some_region() {
  for (const auto& [length, region] : regions_) {
    if (region.users != 0) continue;
    const auto error = sequencer_->end_region(region.remote);
    run_.verdict.require(error == 0 || error == -EACCES, "a region cannot be ended");
    if (error != 0)
      region_is_lost(length);
    else
      lose_region(length);
    ++begun_;
    return true;
  }
  return false;
}

bool ManagedParty::begin_on_region(Time now) {
  if (regions_.empty()) return begin_region(now);
  auto& region =
      std::next(regions_.begin(), static_cast<std::ptrdiff_t>(dice_.below(regions_.size())))
          ->second;
  switch (dice_.below(3)) {
    case 0:
      return begin_put(region, now);
    case 1:
      return begin_get(region, now);
    default:
      return begin_fetch(region, now);
  }
}

std::optional<std::size_t> ManagedParty::idle_slot(RegionTruth& truth) {
  const auto first = dice_.below(RegionTruth::kSlots);
  for (std::size_t i = 0; i < RegionTruth::kSlots; ++i) {
    const auto index = (first + i) % RegionTruth::kSlots;
    if (!truth.slot(index).busy) return index;
  }
  return std::nullopt;
}

bool ManagedParty::begin_put(OpenRegion& region, Time now) {
  auto& truth = ledger_.regions[region.remote.length];
  const auto slot = idle_slot(truth);
  if (!slot) return begin_write(now);
  Pending p;
  p.kind = Kind::kPut;
  p.length = truth.slot_size();
  p.region = region.remote.length;
  p.slot = *slot;
  p.lot = transmit_memory_->take(p.length, 1, dice_);
  if (!p.lot) return false;
  const auto context = ledger_.new_context();
  p.pattern = ledger_.pattern(context);
  fill_pattern(transmit_memory_->bytes(*p.lot), p.pattern);
  truth.slot(*slot).busy = true;
  ++region.users;
  std::uint16_t flags = 0;
  if (dice_.chance(kTenth)) flags |= wire::flag::kInterrupt;
  return started(sequencer_->put(context, region.remote, truth.slot_offset(*slot),
                                 transmit_memory_->address(*p.lot), p.length,
                                 {.flags = flags, .quiet = context % 4 == 0}),
                 context, p, now);
}

bool ManagedParty::begin_get(OpenRegion& region, Time now) {
  auto& truth = ledger_.regions[region.remote.length];
  const auto slot = idle_slot(truth);
  if (!slot) return begin_write(now);
  Pending p;
  p.kind = Kind::kGet;
  p.length = truth.slot_size();
  p.region = region.remote.length;
  p.slot = *slot;
  p.lot = receive_memory_->take(p.length, 1, dice_);
  if (!p.lot) return begin_write(now);
  truth.slot(*slot).busy = true;
  ++region.users;
  const auto context = ledger_.new_context();
  return started(sequencer_->get(context, region.remote, truth.slot_offset(*slot), landing(*p.lot)),
                 context, p, now);
}

bool ManagedParty::begin_fetch(OpenRegion& region, Time now) {
  auto& truth = ledger_.regions[region.remote.length];
  Pending p;
  p.kind = Kind::kFetch;
  p.length = kWord;
  p.region = region.remote.length;
  p.lot = receive_memory_->take(kWord, kWord, dice_);
  if (!p.lot) return begin_write(now);
  const auto context = ledger_.new_context();
  p.fetch = truth.draw_fetch(dice_, context);
  ++region.users;
  return started(sequencer_->fetch(context, region.remote, p.fetch.word * kWord, p.fetch.function,
                                   p.fetch.operand, p.fetch.compare, landing(*p.lot)),
                 context, p, now);
}

void ManagedParty::cancel_some() {
  std::vector<Context> wanted;
  for (auto& [context, p] : pending_)
    if (p.cancel && dice_.chance(kHalf)) wanted.push_back(context);
  for (const auto context : wanted) {
    auto& p = pending_.at(context);
    p.cancel = false;
    p.cancelled = true;
    ++ledger_.cancels;
    const auto error = sequencer_->cancel(context);
    run_.verdict.require(error == 0 || error == -ENOENT, "cancel fails");
  }
}

}  // namespace stp::sim
