// SPDX-License-Identifier: BSD-3-Clause
// Ended Transfers and regions of a connection. No frame finds them. They are freed in slices, which
// return the memory to the owner's budget.
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
  // Frees up to `most` Blocks, places and Transfers. Returns how many.
  std::size_t dismantle(std::size_t most);

 private:
  std::shared_ptr<WindowPurse> purse_;  // destroyed last: the others return memory to it
  std::vector<TransferTable::Transfers::node_type> apart_;
  std::vector<TransferTable::Transfers> together_;
};

}  // namespace stp
