// SPDX-License-Identifier: BSD-3-Clause
// Transfers to this side and regions opened here, with their complete Blocks (section 9), and a
// table of them that forgets the oldest (section 7).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stp/base/assert.h"
#include "stp/node/inbound/blocks_ahead.h"
#include "stp/node/inbound/held_ends.h"
#include "stp/node/inbound/inbound_block.h"
#include "stp/node/inbound/window_purse.h"

namespace stp {

struct InboundTransfer {
  std::uint32_t r_id = 0, i_id = 0;
  bool region = false;  // opened by MRA
  std::uint16_t mx = 0;
  std::uint64_t t_len = 0;      // kUnknownLength: the RTS was not seen
  std::uint64_t start = 0;      // region: linear address
  unsigned blocksize = 0;       // scheduled: exponent, fixed by the first CTS
  std::uint32_t b_seq = 0;      // the first incomplete Block
  BlocksAhead ahead;            // complete Blocks beyond b_seq
  std::uint32_t b_win = 0;      // region: the most Blocks on their way
  std::uint32_t partial = 0;    // region: partly received Blocks
  std::uint32_t most_stus = 0;  // region: the most STUs of a Block
  HeldEnds held;                // region: ends of Blocks that must not be visible yet
  // Region: places for Blocks of several STUs. Block b uses place b modulo their number, a power of
  // two. Empty until the first such Block; each place is allocated for its first Block.
  std::vector<std::unique_ptr<InboundBlock>> window;
  std::unordered_map<std::uint32_t, GrantedBlock> blocks;  // scheduled: granted, incomplete
  std::uint64_t tracked = 0;      // scheduled: capacity of their maps, in STUs
  std::uint64_t outstanding = 0;  // scheduled: bytes of `blocks` that have not arrived
  bool over = false;              // ended; being freed
  WindowBytes memory;             // of this and of its Blocks or window

  static constexpr std::uint64_t kUnknownLength = ~std::uint64_t{0};
  [[nodiscard]] std::uint64_t block_count() const;
  [[nodiscard]] bool finished() const {
    return !region && t_len != kUnknownLength && b_seq == block_count();
  }
  [[nodiscard]] bool has(std::uint32_t b_num) const {  // is Block b_num complete?
    // Put Blocks are numbered without end, so "before" is taken modulo 2^32 there.
    const bool before = region ? static_cast<std::int32_t>(b_num - b_seq) < 0 : b_num < b_seq;
    return before || (!ahead.empty() && ahead.contains(b_num, b_seq));
  }
  // Whether the end of Silent Block `b_num` must wait for earlier Blocks.
  // protocol: 8.15
  [[nodiscard]] bool holds_end(std::uint32_t b_num) const { return region && b_num != b_seq; }
  // protocol: 9.6
  void complete(std::uint32_t b_num) {
    STP_ASSERT(!has(b_num), "a Block completes once");
    if (b_num != b_seq) return ahead.insert(b_num, b_seq);
    ++b_seq;
    if (!ahead.empty()) b_seq += ahead.pass(b_seq);
    STP_ASSERT(ahead.empty() || !ahead.contains(b_seq, b_seq),
               "B_seq is a Block that is incomplete");
  }
  // Frees up to `most` of its parts. Returns how many: fewer than `most` if none is left.
  std::size_t dismantle(std::size_t most);

 private:
  friend class TransferTable;
  bool under_way = false;
  InboundTransfer* older = nullptr;  // order in the table
  InboundTransfer* newer = nullptr;
};

// By R_id. erase() and make_room() may invalidate references to Transfers.
class TransferTable {
 public:
  // protocol: 7.14
  static constexpr std::size_t kMost = 256;
  using Transfers = std::map<std::uint32_t, InboundTransfer>;

  [[nodiscard]] InboundTransfer* find(std::uint32_t r_id) const {
    if (recent_ != nullptr && recent_->r_id == r_id) return recent_;
    const auto found = by_id_.find(r_id);
    if (found == by_id_.end()) return nullptr;
    return recent_ = const_cast<InboundTransfer*>(&found->second);
  }
  // Makes room for one more Transfer, if necessary by forgetting the oldest with nothing
  // outstanding. False: no room.
  bool make_room() { return by_id_.size() < kMost || forget_oldest(nullptr, true); }
  // Forgets the oldest Transfer with nothing outstanding, except `but`. `unfinished`: may be one
  // with some Blocks complete and others not yet granted. False: none.
  bool forget_oldest(const InboundTransfer* but = nullptr, bool unfinished = false);
  // Finds a region, or a Transfer with open Blocks, that the peer calls `i_id`. False: none.
  bool find_initiated(std::uint32_t i_id, std::uint32_t& r_id) const;
  // Requires room, and an `r_id` not in the table. Adds a region, or a Transfer of `t_len` bytes
  // under way.
  InboundTransfer& add_region(std::uint32_t r_id);
  InboundTransfer& begin(std::uint32_t r_id, std::uint32_t i_id, std::uint64_t t_len);
  // Removes it from the table. The result holds its memory.
  Transfers::node_type take(InboundTransfer& transfer);
  Transfers take_all();
  // Whether a Transfer of `t_len` bytes that the peer calls `i_id` is under way.
  [[nodiscard]] bool under_way(std::uint32_t i_id, std::uint64_t t_len) const;
  // The last Block of `transfer` is complete.
  void finished(InboundTransfer& transfer);

 private:
  InboundTransfer& add(std::uint32_t r_id);
  Transfers by_id_;
  InboundTransfer *oldest_ = nullptr, *newest_ = nullptr;
  std::multiset<std::pair<std::uint32_t, std::uint64_t>> under_way_;  // I_id, T_len
  mutable InboundTransfer* recent_ = nullptr;                         // found last
};

}  // namespace stp
