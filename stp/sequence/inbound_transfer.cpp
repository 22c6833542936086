// SPDX-License-Identifier: BSD-3-Clause
#include "stp/sequence/inbound_transfer.h"

#include <algorithm>

namespace stp {

// protocol: 9.8
std::uint64_t InboundTransfer::block_count() const {
  return t_len == 0 ? 1 : (t_len + (std::uint64_t{1} << blocksize) - 1) >> blocksize;
}

bool InboundTransfer::is_ahead(std::uint32_t b_num) const {
  return std::find(ahead.begin(), ahead.end(), b_num) != ahead.end();
}

// Blocks that came before their turn have it now.
void InboundTransfer::pass_ahead() {
  for (; !ahead.empty(); ++b_seq) {
    auto const next = std::find(ahead.begin(), ahead.end(), b_seq);
    if (next == ahead.end()) return;
    ahead.erase(next);
  }
}

bool TransferTable::make_room() {
  if (by_id_.size() < kMost) return true;
  for (auto* each = oldest_; each != nullptr; each = each->newer) {
    if (each->region || each->open_blocks != 0) continue;
    erase(*each);
    return true;
  }
  return false;
}

InboundTransfer& TransferTable::add(std::uint32_t r_id, bool region) {
  auto& transfer = by_id_[r_id];
  transfer.r_id = r_id;
  transfer.region = region;
  transfer.older = newest_;
  (newest_ == nullptr ? oldest_ : newest_->newer) = &transfer;
  newest_ = &transfer;
  if (!region) under_way_.push_back(&transfer);
  return transfer;
}

void TransferTable::erase(InboundTransfer& transfer) {
  if (recent_ == &transfer) recent_ = nullptr;
  finished(transfer);
  (transfer.older == nullptr ? oldest_ : transfer.older->newer) = transfer.newer;
  (transfer.newer == nullptr ? newest_ : transfer.newer->older) = transfer.older;
  by_id_.erase(transfer.r_id);
}

void TransferTable::clear() {
  *this = {};
}

bool TransferTable::under_way(std::uint32_t i_id, std::uint64_t t_len) const {
  return std::any_of(under_way_.begin(), under_way_.end(),
                     [&](auto const* t) { return t->i_id == i_id && t->t_len == t_len; });
}

void TransferTable::finished(const InboundTransfer& transfer) {
  std::erase(under_way_, &transfer);
}

}  // namespace stp
