// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/session.h"

namespace stp::sim {
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
  lost_ = true;
  end_ = nullptr;
  forget();
}

}  // namespace stp::sim
