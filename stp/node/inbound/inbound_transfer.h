// SPDX-License-Identifier: BSD-3-Clause
// Transfers to this side and regions opened here: their complete Blocks, the memory that tracks
// them, and what is left of them (sections 7 and 9).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"
#include "stp/base/work_meter.h"
#include "stp/node/inbound/inbound_block.h"
#include "stp/node/node.h"

namespace stp {

// The Blocks of a Transfer that completed before an earlier one: a bit per Block number, in a ring
// that starts at the first incomplete Block (section 9).
class BlocksAhead {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // `b_num` is not before `first`, the first incomplete Block.
  [[nodiscard]] bool contains(std::uint32_t b_num, std::uint32_t first) const {
    return b_num - first < size() && (word(b_num) >> b_num % 64 & 1) != 0;
  }
  void insert(std::uint32_t b_num, std::uint32_t first) {
    STP_ASSERT(!contains(b_num, first), "a Block completes once");
    if (b_num - first >= size()) grow(b_num, first);
    STP_ASSERT(b_num - first < size(), "the ring holds the numbers up to the new one");
    word(b_num) |= std::uint64_t{1} << b_num % 64;
    ++count_;
  }
  // Removes the run of complete Blocks that starts at `first` and returns its length.
  std::uint32_t pass(std::uint32_t first) {
    const auto from = first;
    while (count_ > 0) {
      const auto at = first % 64;
      const auto run = static_cast<std::uint32_t>(std::countr_one(word(first) >> at));
      if (run == 0) break;
      word(first) &= ~((run == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << run) - 1) << at);
      STP_ASSERT(run <= count_, "no more Blocks are passed than were complete");
      count_ -= run;
      first += run;
      work::count("Blocks ahead of their turn");
      if (at + run < 64) break;
    }
    return first - from;
  }

 private:
  [[nodiscard]] std::uint32_t size() const {
    return static_cast<std::uint32_t>(64 * words_.size());
  }
  [[nodiscard]] const std::uint64_t& word(std::uint32_t b_num) const {
    return words_[b_num / 64 & (words_.size() - 1)];
  }
  std::uint64_t& word(std::uint32_t b_num) { return words_[b_num / 64 & (words_.size() - 1)]; }

  // Numbers may wrap. The ring is aligned to them and large enough for a window of any alignment,
  // so that each number has its own bit.
  void grow(std::uint32_t b_num, std::uint32_t first) {
    std::vector<std::uint64_t> more(std::bit_ceil((b_num - first) / 64 + 1));
    for (std::size_t w = 0; w < words_.size(); ++w) {
      const auto number = first + static_cast<std::uint32_t>(64 * w);
      // Copies the ring once, starting at the word of `first`. The bits of that word before `first`
      // stand for the numbers after all others.
      const auto bits = word(number);
      const auto before = w == 0 ? (std::uint64_t{1} << first % 64) - 1 : 0;
      more[number / 64 & (more.size() - 1)] |= bits & ~before;
      const auto wrapped = number / 64 + static_cast<std::uint32_t>(words_.size());
      more[wrapped & (more.size() - 1)] |= bits & before;
    }
    work::count("Blocks ahead of their turn", more.size());
    words_ = std::move(more);
  }

  std::vector<std::uint64_t> words_;  // the size is 0 or a power of two
  std::uint32_t count_ = 0;
};

// The share of an owner's budget that pays for tracking data on its way to the owner's connections.
// A connection takes bytes here before it allocates and returns them when it frees.
// The purse of one owner. Lives until everything of its connections is destroyed.
class WindowPurse {
 public:
  // Bytes taken from the budget at a time, to avoid a call for each Block.
  static constexpr std::uint64_t kStep = std::uint64_t{1} << 16;

  // `budget` nullptr: no limit. Sets `freed` when memory that was short is free again.
  WindowPurse(WindowBudget* budget, std::uint64_t owner, bool& freed)
      : budget_(budget), owner_(owner), freed_(freed) {}
  ~WindowPurse() {
    STP_ASSERT(used_ == 0, "all that was taken has been given back when the purse goes");
    if (held_ != 0) budget_->hold(owner_, held_, 0);
  }
  WindowPurse(const WindowPurse&) = delete;
  WindowPurse& operator=(const WindowPurse&) = delete;

  [[nodiscard]] bool take(std::uint64_t bytes) {
    if (!has(bytes)) return false;
    used_ += bytes;
    STP_ASSERT(budget_ == nullptr || used_ <= held_, "what is used is held from the budget");
    return true;
  }
  void give(std::uint64_t bytes) {
    STP_ASSERT(bytes <= used_, "what is given back was taken");
    used_ -= bytes;
    if (short_) freed_ = true;
    if (budget_ != nullptr && held_ - used_ >= 2 * kStep) hold(rounded(used_));
  }
  // Whether take(bytes) would succeed.
  [[nodiscard]] bool has(std::uint64_t bytes) {
    if (budget_ == nullptr || bytes <= held_ - used_) return true;
    short_ = !hold(rounded(used_ + bytes)) && !hold(used_ + bytes);
    return !short_;
  }
  [[nodiscard]] std::uint64_t used() const { return used_; }
  // The last has() that had to ask the budget found too little.
  [[nodiscard]] bool is_short() const { return short_; }

 private:
  static std::uint64_t rounded(std::uint64_t bytes) { return (bytes + kStep - 1) / kStep * kStep; }
  bool hold(std::uint64_t bytes) {
    if (!budget_->hold(owner_, held_, bytes)) return false;
    held_ = bytes;
    return true;
  }

  WindowBudget* budget_;
  std::uint64_t owner_;
  bool& freed_;
  std::uint64_t used_ = 0, held_ = 0;
  bool short_ = false;
};

// Bytes taken from a purse, which must outlive this.
class WindowBytes {
 public:
  WindowBytes() = default;
  ~WindowBytes() { reset(); }
  WindowBytes(WindowBytes&& other) noexcept
      : purse_(std::exchange(other.purse_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  WindowBytes& operator=(WindowBytes&& other) noexcept {
    std::swap(purse_, other.purse_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  WindowBytes(const WindowBytes&) = delete;
  WindowBytes& operator=(const WindowBytes&) = delete;

  // Takes `bytes` from `purse`, always the same one; nullptr: no limit. False: the purse has too
  // little.
  [[nodiscard]] bool add(WindowPurse* purse, std::uint64_t bytes) {
    STP_ASSERT(purse_ == nullptr || purse_ == purse, "it is all of one purse");
    if (purse == nullptr) return true;
    if (!purse->take(bytes)) return false;
    purse_ = purse;
    bytes_ += bytes;
    return true;
  }
  void give(std::uint64_t bytes) {
    if (purse_ == nullptr) return;
    STP_ASSERT(bytes <= bytes_, "what is given back was taken by the same");
    purse_->give(bytes);
    bytes_ -= bytes;
  }
  void reset() {
    if (purse_ != nullptr) std::exchange(purse_, nullptr)->give(std::exchange(bytes_, 0));
  }

 private:
  WindowPurse* purse_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Transfers to this side and regions opened here, with their complete Blocks (section 9), and a
// table of them that forgets the oldest (section 7).
struct alignas(kCacheLine) InboundTransfer {
  // Region: places for Blocks of several STUs. Block b uses place b modulo their number, a power of
  // two. Empty until the first such Block; each place is allocated for its first Block.
  std::vector<std::unique_ptr<InboundBlock>> window;
  std::uint32_t most_stus = 0;  // region: the most STUs of a Block
  unsigned blocksize = 0;       // scheduled: exponent, fixed by the first CTS
  std::uint64_t tracked = 0;    // scheduled: capacity of their maps, in STUs

  // A Block of one STU into a region needs one cache line, from the end of `ahead` to the beginning
  // of `held`.
  BlocksAhead ahead;  // complete Blocks beyond b_seq
  std::uint32_t r_id = 0, i_id = 0;
  bool region = false;  // opened by MRA
  bool over = false;    // ended; being freed
  std::uint16_t mx = 0;
  std::uint32_t b_seq = 0;    // the first incomplete Block
  std::uint64_t t_len = 0;    // kUnknownLength: the RTS was not seen
  std::uint64_t start = 0;    // region: linear address
  std::uint32_t b_win = 0;    // region: the most Blocks on their way
  std::uint32_t partial = 0;  // region: partly received Blocks
  HeldEnds held;              // region: ends of Blocks that must not be visible yet

  std::unordered_map<std::uint32_t, GrantedBlock> blocks;  // scheduled: granted, incomplete
  std::uint64_t outstanding = 0;  // scheduled: bytes of `blocks` that have not arrived
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
  // Brings what a Block needs of the one found last into the caches.
  void fetch_ahead() const {
    if (recent_ != nullptr) fetch_line(&recent_->b_seq);
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

namespace stp::window_memory {

// The cost of tracking data on its way: STUs, limited per connection, and bytes, which the owner's
// budget pays for.
// protocol: 7.14, 7.19

// A region's place for a Block counts as a map of at least this many STUs, about what the place
// itself takes. So many small windows do not get more memory than a few large ones.
// protocol: 7.14
inline constexpr std::uint64_t kLeastTracked = 1'024;
// Overhead of tables and allocator per entry.
inline constexpr std::uint64_t kTableEntry = 64;

// The number of places of a region with this window.
inline std::uint32_t places_for(std::uint32_t b_win) {
  return std::bit_ceil(b_win);
}
// The STUs that `places` places of `stus` STUs each count as.
inline std::uint64_t tracked(std::uint64_t stus, std::uint32_t places) {
  return std::max(stus, kLeastTracked) * places;
}
// The STUs that `transfer` counts as.
inline std::uint64_t tracked_by(const InboundTransfer& transfer) {
  return transfer.region ? tracked(transfer.most_stus, places_for(transfer.b_win))
                         : transfer.tracked;
}

// Bytes of a Transfer with up to `blocks` Blocks under way, including the bits of Blocks complete
// before their turn.
inline std::uint64_t of_transfer(std::uint64_t blocks) {
  return sizeof(InboundTransfer) + 2 * kTableEntry + std::bit_ceil((blocks + 63) / 64) * 8;
}
// Bytes of a granted Block.
inline std::uint64_t of_block(std::uint64_t stus, bool in_parts = false) {
  return sizeof(GrantedBlock) + kTableEntry + StuMap::footprint(stus) +
         (in_parts ? sizeof(GrantedParts) : 0);
}
// Bytes of all places of a region.
inline std::uint64_t of_window(std::uint64_t stus, std::uint32_t places) {
  return places *
         (sizeof(InboundBlock) + HeldEnds::kPlaceSize + kTableEntry + StuMap::footprint(stus));
}

}  // namespace stp::window_memory

namespace stp {

// Ended Transfers and regions of a connection. No frame finds them. They are freed in slices, which
// return the memory to the owner's budget.
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
