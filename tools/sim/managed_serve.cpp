// SPDX-License-Identifier: BSD-3-Clause
// Serves the peer's operations.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tools/sim/managed.h"

namespace stp::sim {
namespace {

constexpr Rate kPutOff = kAlways / 5;
constexpr Time kLongestPutOff = 2 * kMillisecond;
constexpr std::uint64_t kMaxServeWindow = 8;

}  // namespace

void ManagedParty::want_receive(std::uint64_t length) {
  wanted_receives_.push_back(length);
  poke();
}

// Posts receives at once, or a little late so that the write has to wait.
void ManagedParty::post_receives(Time now) {
  while (!wanted_receives_.empty()) {
    if (dice_.chance(kPutOff)) {
      look_again_ = now + dice_.magnitude(1, kLongestPutOff);
      return;
    }
    const auto needed = wanted_receives_.front();
    auto length = dice_.between(needed, receive_memory_->largest());
    const bool too_short = needed > 0 && dice_.chance(workload_.refusals);
    if (too_short) length = dice_.between(0, needed - 1);
    Pending p;
    p.kind = Kind::kReceive;
    p.lot = receive_memory_->take(length, 1, dice_);
    if (!p.lot) {
      if (drop_receive()) continue;
      look_again_ = now + kLongestPutOff;
      return;
    }
    if (too_short) ++ledger_.refusals;
    p.length = length;
    p.since = now;
    wanted_receives_.pop_front();
    const auto context = ledger_.new_context();
    run_.verdict.require(sequencer_->post_receive(context, landing(*p.lot)) == 0,
                         "a receive cannot be posted");
    pending_.emplace(context, p);
  }
}

// Cancels the oldest receive if the peer has no write left for it: a refused write leaves its
// receive behind.
bool ManagedParty::drop_receive() {
  if (under_way(Kind::kReceive) == 0 || peer_->under_way(Kind::kWrite) > wanted_receives_.size())
    return false;
  const auto oldest = std::find_if(pending_.begin(), pending_.end(),
                                   [](const auto& p) { return p.second.kind == Kind::kReceive; });
  ++ledger_.dropped;
  sequencer_->cancel(oldest->first);
  take_completions();
  return true;
}

void ManagedParty::serve_all(Time now) {
  while (!requests_.empty()) {
    const auto request = requests_.front();
    if (dice_.chance(workload_.refusals)) {
      ++ledger_.refusals;
      sequencer_->refuse(request.number);
    } else if (!(request.region ? serve_region(request) : serve_read(request, now))) {
      if (!drop_receive()) look_again_ = now + kLongestPutOff;  // no lot is free now
      return;
    }
    requests_.pop_front();
  }
}

bool ManagedParty::serve_read(const Request& request, Time now) {
  const auto truth = ledger_.reads.find(request.length);
  if (truth == ledger_.reads.end() || request.length > transmit_memory_->largest()) {
    expect(false, "a read is asked for that nobody began");
    sequencer_->refuse(request.number);
    return true;
  }
  Pending p;
  p.kind = Kind::kServe;
  p.length = request.length;
  p.pattern = truth->second.pattern;
  p.lot = transmit_memory_->take(p.length, 1, dice_);
  if (!p.lot) return false;
  p.since = now;
  fill_pattern(transmit_memory_->bytes(*p.lot), p.pattern);
  const auto context = ledger_.new_context();
  const auto error =
      sequencer_->serve_read(request.number, context, transmit_memory_->address(*p.lot), p.length);
  if (error == 0)
    pending_.emplace(context, p);
  else  // the reader has cancelled it meanwhile
    transmit_memory_->give_back(*p.lot);
  expect(error == 0 || (error == -ECANCELED && ledger_.cancels > 0), "a read cannot be served");
  return true;
}

bool ManagedParty::serve_region(const Request& request) {
  const auto truth = ledger_.regions.find(request.length);
  if (truth == ledger_.regions.end() || request.length > receive_memory_->largest()) {
    expect(false, "a region is asked for that nobody wants");
    sequencer_->refuse(request.number);
    return true;
  }
  const auto lot = receive_memory_->take(request.length, kWord, dice_);
  if (!lot) return false;
  const auto memory = receive_memory_->bytes(*lot);
  std::memset(memory.data(), 0, RegionTruth::kWords * kWord);
  auto& region = truth->second;
  for (std::size_t slot = 0; slot < RegionTruth::kSlots; ++slot)
    fill_pattern(memory.subspan(region.slot_offset(slot), region.slot_size()),
                 *region.slot(slot).pattern);
  const auto window = static_cast<std::uint32_t>(dice_.between(1, kMaxServeWindow));
  const auto error = sequencer_->serve_region(request.number, landing(*lot), window);
  if (error == 0)
    served_[request.number] = {*lot, request.length, {}};
  else
    receive_memory_->give_back(*lot);
  expect(error == 0 || (error == -ECANCELED && ledger_.cancels > 0), "a region cannot be opened");
  return true;
}

// Called when the peer can no longer change the region.
void ManagedParty::close_region(const Served& served) {
  std::array<std::uint64_t, RegionTruth::kWords> words{};
  std::memcpy(words.data(), receive_memory_->bytes(served.lot).data(), sizeof words);
  ledger_.regions[served.length].close(words);
  run_.verdict.require(receive_memory_->intact_around(served.lot),
                       "something wrote outside the region that was opened");
}

void ManagedParty::on_region_ended(const Completion& c) {
  const auto found = served_.find(c.request);
  if (found == served_.end()) return expect(false, "a region ended that was not open");
  if (stopping_) return;  // stop() closes all of them
  close_region(found->second);
  receive_memory_->give_back(found->second.lot);
  served_.erase(found);
}

}  // namespace stp::sim
