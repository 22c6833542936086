// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound_transfer.h"

#include "stp/base/assert.h"

namespace stp {

// protocol: 9.8
std::uint64_t InboundTransfer::block_count() const {
  return t_len == 0 ? 1 : (t_len + (std::uint64_t{1} << blocksize) - 1) >> blocksize;
}

std::size_t InboundTransfer::dismantle(std::size_t most) {
  std::size_t done = 0;
  for (; done < most && !blocks.empty(); ++done) blocks.erase(blocks.begin());
  for (; done < most && !window.empty(); ++done) window.pop_back();
  work::count("what a Transfer held", done);
  return done;
}

bool TransferTable::forget_oldest(const InboundTransfer* but, bool unfinished) {
  for (auto* each = oldest_; each != nullptr; each = each->newer) {
    work::count("Transfers of a connection");
    if (each == but || each->region || !each->blocks.empty()) continue;
    // Its B_seq would begin at 0 again, and never get to the end.
    const bool begun = each->b_seq != 0 || !each->ahead.empty();
    const bool may_end = each->t_len != InboundTransfer::kUnknownLength;
    if (!unfinished && each->under_way && may_end && begun) continue;
    STP_ASSERT(each->tracked == 0 && each->outstanding == 0,
               "a Transfer without a Block is owed nothing");
    take(*each);
    return true;
  }
  return false;
}

// protocol: 9.1
bool TransferTable::find_initiated(std::uint32_t i_id, std::uint32_t& r_id) const {
  for (const auto* each = newest_; each != nullptr; each = each->older) {
    work::count("Transfers of a connection");
    if (each->i_id != i_id || (!each->region && each->blocks.empty())) continue;
    r_id = each->r_id;
    return true;
  }
  return false;
}

InboundTransfer& TransferTable::add(std::uint32_t r_id) {
  STP_ASSERT(by_id_.size() < kMost && !by_id_.contains(r_id),
             "a new Transfer has a place and a name");
  auto& transfer = by_id_[r_id];
  transfer.r_id = r_id;
  transfer.older = newest_;
  (newest_ == nullptr ? oldest_ : newest_->newer) = &transfer;
  newest_ = &transfer;
  return transfer;
}

InboundTransfer& TransferTable::add_region(std::uint32_t r_id) {
  auto& region = add(r_id);
  region.region = true;
  return region;
}

InboundTransfer& TransferTable::begin(std::uint32_t r_id, std::uint32_t i_id, std::uint64_t t_len) {
  auto& transfer = add(r_id);
  transfer.i_id = i_id;
  transfer.t_len = t_len;
  under_way_.emplace(i_id, t_len);
  transfer.under_way = true;
  return transfer;
}

TransferTable::Transfers::node_type TransferTable::take(InboundTransfer& transfer) {
  STP_ASSERT(!transfer.over && by_id_.contains(transfer.r_id), "what is taken is in the table");
  if (recent_ == &transfer) recent_ = nullptr;
  finished(transfer);
  transfer.over = true;
  (transfer.older == nullptr ? oldest_ : transfer.older->newer) = transfer.newer;
  (transfer.newer == nullptr ? newest_ : transfer.newer->older) = transfer.older;
  STP_ASSERT((oldest_ == nullptr) == (by_id_.size() == 1), "the order names what is in the table");
  return by_id_.extract(transfer.r_id);
}

TransferTable::Transfers TransferTable::take_all() {
  auto all = std::move(by_id_);
  *this = {};
  return all;
}

bool TransferTable::under_way(std::uint32_t i_id, std::uint64_t t_len) const {
  return under_way_.contains({i_id, t_len});
}

void TransferTable::finished(InboundTransfer& transfer) {
  if (!std::exchange(transfer.under_way, false)) return;
  const auto found = under_way_.find({transfer.i_id, transfer.t_len});
  STP_ASSERT(found != under_way_.end(), "a Transfer that is under way is found by its offer");
  under_way_.erase(found);
}

std::size_t InboundRemains::dismantle(std::size_t most) {
  std::size_t done = 0;
  while (done < most && !apart_.empty()) {
    done += apart_.back().mapped().dismantle(most - done);
    if (done == most) return done;
    apart_.pop_back();
    ++done;
  }
  while (done < most && !together_.empty()) {
    auto& transfers = together_.back();
    if (transfers.empty()) {
      together_.pop_back();
      continue;
    }
    const auto first = transfers.begin();
    done += first->second.dismantle(most - done);
    if (done == most) return done;
    transfers.erase(first);
    ++done;
  }
  return done;
}

}  // namespace stp
