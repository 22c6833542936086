// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/session.h"

#include <algorithm>

namespace stp::sim {
namespace {

std::size_t round_up(std::size_t size, unsigned bufsize) {
  const auto buffer = std::size_t{1} << bufsize;
  return (size + buffer - 1) / buffer * buffer;
}

}  // namespace

Arena::Arena(Host& host, EndpointId endpoint, Direction direction, std::size_t lots,
             std::size_t lot_size)
    : host_(host),
      bufsize_(host.config().endpoint.bufsize),
      lot_size_(round_up(lot_size + 2 * kMargin, bufsize_)),
      memory_(std::make_shared<Memory>(lots * lot_size_)),
      taken_(lots),
      region_(host.map(endpoint, direction, memory_, 1, bufx_)) {
  fill_canary(memory_->all());
}

std::optional<Lot> Arena::take(std::size_t length, std::size_t alignment, Dice& dice) {
  auto index = dice.below(taken_.size());
  for (auto left = taken_.size(); taken_[index]; index = (index + 1) % taken_.size())
    if (--left == 0) return std::nullopt;
  taken_[index] = true;
  host_.run().verdict.require(open_ || has_canary(whole(index)),
                              "bytes were written where no operation was under way");
  const auto room = (largest() - length) / alignment;
  const auto lead = kMargin + alignment * dice.between(0, room);
  return Lot{index, index * lot_size_ + lead, length};
}

void Arena::give_back(const Lot& lot) {
  fill_canary(whole(lot.index));
  taken_[lot.index] = false;
}

Address Arena::address(const Lot& lot) const {
  return Address::from_linear(Address{bufx_, 0}.linear(bufsize_) + lot.start, bufsize_);
}

std::uint16_t Arena::allow(VcId vc, std::uint8_t permissions) {
  std::uint16_t mx = 0;
  if (host_.node().alloc_mx(region_, vc, permissions, mx) != 0)
    host_.run().verdict.fail("no Mx for memory that is mapped");
  return mx;
}

bool Arena::intact_around(const Lot& lot) const {
  const auto all = whole(lot.index);
  const auto before = lot.start - lot.index * lot_size_;
  return has_canary(all.first(before)) && has_canary(all.subspan(before + lot.length));
}

bool Arena::intact() const {
  for (std::size_t i = 0; i < taken_.size(); ++i)
    if (!open_ && !taken_[i] && !has_canary(whole(i))) return false;
  return true;
}

void Arena::unmap() {
  host_.unmap(region_);
}

namespace {

// For each side's own operations, the peer's operations, and regions.
constexpr std::size_t kLotsPerOperation = 2, kLotsForRegions = 3;

}  // namespace

void Party::opened(End& end, const VcInfo& info, Time now) {
  state_ = State::kOpen;
  end_ = &end;
  info_ = info;
  map_memory();
  mx_ = receive_memory_->allow(end.id(), permit::kAll);
  begin(now);
}

void Party::map_memory() {
  const auto lots = kLotsPerOperation * workload_.at_once + kLotsForRegions;
  auto& host = end_->host();
  receive_memory_.emplace(host, info_.endpoint, Direction::kReceive, lots, workload_.longest);
  transmit_memory_.emplace(host, info_.endpoint, Direction::kTransmit, lots, workload_.longest);
}

void Party::ended(int error, Time now) {
  state_ = State::kEnded;
  error_ = error;
  stop(error, now);
  end_ = nullptr;
  if (!receive_memory_) return;
  receive_memory_->unmap();
  transmit_memory_->unmap();
}

void Party::gone() {
  state_ = State::kGone;
  run_.verdict.require(memory_intact(), "bytes were written that nobody had granted");
}

void Party::lost() {
  state_ = State::kGone;
  end_ = nullptr;
  forget();
}

SequencerConfig sequencer_config(const VcInfo& info, unsigned max_block, std::uint32_t cts_window) {
  auto config = SequencerConfig::of(info);
  config.max_block = max_block;
  config.cts_window = cts_window;
  return config;
}

}  // namespace stp::sim
