// SPDX-License-Identifier: BSD-3-Clause
// Transfers to this side, and the regions that it opened: which of their Blocks have come
// (section 9), and a table of them that forgets the oldest (section 7).
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
  std::uint64_t t_len = 0;      // kUnknownLength: its RTS was not seen
  std::uint64_t start = 0;      // region: linear address
  unsigned blocksize = 0;       // scheduled: exponent, fixed by the first CTS
  std::uint32_t b_seq = 0;      // the first Block not complete
  BlocksAhead ahead;            // complete Blocks beyond b_seq
  std::uint32_t b_win = 0;      // region: Blocks that may be on their way
  std::uint32_t partial = 0;    // region: Blocks of which an STU has come, and not all
  std::uint32_t most_stus = 0;  // region: of one Block
  HeldEnds held;                // region: ends of Blocks that must not be seen yet
  // Region: places, a power of two; Block b at b mod their count. None until a Block comes that is
  // more than one STU, and each is made for the first Block that has it.
  std::vector<std::unique_ptr<InboundBlock>> window;
  std::unordered_map<std::uint32_t, GrantedBlock> blocks;  // scheduled: granted, not complete
  std::uint64_t tracked = 0;      // scheduled: STUs that their maps can hold
  std::uint64_t outstanding = 0;  // scheduled: bytes of theirs that have not arrived
  bool over = false;              // has ended, and is being taken down
  WindowBytes memory;             // that it takes, with its Blocks or its window

  static constexpr std::uint64_t kUnknownLength = ~std::uint64_t{0};
  [[nodiscard]] std::uint64_t block_count() const;
  [[nodiscard]] bool finished() const {
    return !region && t_len != kUnknownLength && b_seq == block_count();
  }
  [[nodiscard]] bool has(std::uint32_t b_num) const {  // is Block b_num complete?
    // Put Blocks are numbered without end, so "before" is taken modulo 2^32 there.
    bool const before = region ? static_cast<std::int32_t>(b_num - b_seq) < 0 : b_num < b_seq;
    return before || (!ahead.empty() && ahead.contains(b_num, b_seq));
  }
  // Whether the end of a Block that nobody is told of waits for Blocks before it.
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
  // Takes up to `most` of what it still holds away. How much it was.
  std::size_t dismantle(std::size_t most);

 private:
  friend class TransferTable;
  bool under_way = false;
  InboundTransfer* older = nullptr;  // in its table
  InboundTransfer* newer = nullptr;
};

// By R_id. No reference to a Transfer outlives its erase() or make_room().
class TransferTable {
 public:
  // protocol: 7.14
  static constexpr std::size_t kMost = 256;
  using Transfers = std::map<std::uint32_t, InboundTransfer>;

  [[nodiscard]] InboundTransfer* find(std::uint32_t r_id) const {
    if (recent_ != nullptr && recent_->r_id == r_id) return recent_;
    auto const found = by_id_.find(r_id);
    if (found == by_id_.end()) return nullptr;
    return recent_ = const_cast<InboundTransfer*>(&found->second);
  }
  // A place for one more, of the oldest that nothing is expected for if need be. False: there is
  // none.
  bool make_room() { return by_id_.size() < kMost || forget_oldest(nullptr, true); }
  // The oldest that nothing is expected for, other than `but`; `unfinished`: also one of which some
  // Blocks have come, and others are still to be asked for. False: there is none.
  bool forget_oldest(const InboundTransfer* but = nullptr, bool unfinished = false);
  // A region, or a Transfer with Blocks open, that the peer calls `i_id`. False: there is none.
  bool find_initiated(std::uint32_t i_id, std::uint32_t& r_id) const;
  // Of an R_id that is not in the table, which has room. A region, or a Transfer of `t_len` bytes
  // under way.
  InboundTransfer& add_region(std::uint32_t r_id);
  InboundTransfer& begin(std::uint32_t r_id, std::uint32_t i_id, std::uint64_t t_len);
  // It is not found any more. What it holds is with the result.
  Transfers::node_type take(InboundTransfer& transfer);
  Transfers take_all();
  // Whether a Transfer of `t_len` bytes that the peer calls `i_id` is under way.
  [[nodiscard]] bool under_way(std::uint32_t i_id, std::uint64_t t_len) const;
  // The last Block of it is complete.
  void finished(InboundTransfer& transfer);

 private:
  InboundTransfer& add(std::uint32_t r_id);
  Transfers by_id_;
  InboundTransfer *oldest_ = nullptr, *newest_ = nullptr;
  std::multiset<std::pair<std::uint32_t, std::uint64_t>> under_way_;  // I_id, T_len
  mutable InboundTransfer* recent_ = nullptr;                         // DATA comes in runs
};

}  // namespace stp
