// SPDX-License-Identifier: BSD-3-Clause
// What has ended of what a connection granted. No frame finds it; it is taken down in slices, and
// its memory goes back to the owner's budget as it goes.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "stp/node/inbound/inbound_transfer.h"

namespace stp {

class InboundRemains {
 public:
  InboundRemains() = default;
  explicit InboundRemains(std::shared_ptr<WindowPurse> purse) : purse_(std::move(purse)) {}

  void add(TransferTable::Transfers::node_type transfer) { apart_.push_back(std::move(transfer)); }
  void add(TransferTable::Transfers transfers) { together_.push_back(std::move(transfers)); }
  [[nodiscard]] bool empty() const { return apart_.empty() && together_.empty(); }
  // Takes down up to `most` Blocks, places and Transfers. Returns how many it was.
  std::size_t dismantle(std::size_t most);

 private:
  std::shared_ptr<WindowPurse> purse_;  // goes last: they give back to it
  std::vector<TransferTable::Transfers::node_type> apart_;
  std::vector<TransferTable::Transfers> together_;
};

}  // namespace stp
