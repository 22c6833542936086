// SPDX-License-Identifier: BSD-3-Clause
// What a connection's peer may write: the Blocks its user granted by CTS and the regions it opened
// by MRA (section 7), and which of their STUs and Blocks have come (section 8).
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"
#include "stp/drop_reason.h"
#include "stp/node/inbound/grant_account.h"
#include "stp/node/inbound/inbound_transfer.h"
#include "stp/node/inbound/silence.h"
#include "stp/types.h"

namespace stp {

// What has ended of what a connection granted: nothing finds it, it has to be taken down.
class InboundRemains {
 public:
  InboundRemains() = default;
  explicit InboundRemains(std::shared_ptr<WindowPurse> purse) : purse_(std::move(purse)) {}
  void add(TransferTable::Transfers::node_type transfer) { apart_.push_back(std::move(transfer)); }
  void add(TransferTable::Transfers transfers) { together_.push_back(std::move(transfers)); }
  [[nodiscard]] bool empty() const { return apart_.empty() && together_.empty(); }
  // Up to `most` Blocks, places and Transfers. How many it was.
  std::size_t dismantle(std::size_t most);

 private:
  std::shared_ptr<WindowPurse> purse_;  // goes last: they give back to it
  std::vector<TransferTable::Transfers::node_type> apart_;
  std::vector<TransferTable::Transfers> together_;
};

class Inbound {
 public:
  // Bounds of what one connection can make a Node keep.
  // protocol: 7.14
  static constexpr std::size_t kMaxWindow = 1024;
  static constexpr std::uint64_t kMaxTrackedStus = std::uint64_t{1} << 24;
  static constexpr std::uint32_t kMaxStusOfBlock = 65'535;
  static constexpr std::size_t kMaxGets = 64;
  static constexpr std::size_t kMaxOpenBlocks = 4096;

  // `reuses_ids`: the user may begin a new Transfer with the ids of one that is over. `purse`: what
  // pays for the memory that all this takes; without one there is no bound.
  void configure(unsigned bufsize, unsigned stu_log2, bool reuses_ids, const GrantAccount& account,
                 std::shared_ptr<WindowPurse> purse = {});

  // A Request_To_Send arrived: its T_len and Max_Block bound what a CTS for it grants.
  void offered(const wire::RequestToSend& rts);
  // A request of the peer's arrived: what it called `i_id` before is another's matter.
  void asked(std::uint32_t i_id) { forget_ended(i_id); }
  // An END of the peer's arrived, which calls it `i_id`, and us `r_id` (kNoId: it does not know).
  // Its user may have queued a CTS or MRA before it saw that: they grant nothing.
  void ended_by_peer(std::uint32_t i_id, std::uint32_t r_id);
  // Its user has: an EA leaves.
  void end_seen(std::uint32_t i_id) { forget_ended(i_id); }
  // A CTS leaves. 0 (also where it repeats a grant, or names a Block that is complete), -EINVAL
  // (Blocksize changed, or more than the RTS or an STU number allows; no such Block), -ENOBUFS,
  // -EDQUOT (its owner has no memory for it in its budget), -EALREADY (the peer has ended it).
  // `limit`: so many bytes at most, where the user knows better than T_len and Blocksize.
  int grant(const wire::ClearToSend& cts, std::uint64_t limit, Time now);
  // The bytes that a CTS would grant, and those its Transfer lacks from there on; 0 where it would
  // be refused or grants nothing new. `memory`: what it takes to keep track of them.
  struct Demand {
    std::uint64_t bytes = 0, remaining = 0, memory = 0;
  };
  [[nodiscard]] Demand demand(const wire::ClearToSend& cts) const;
  // Whether there is so much memory. Transfers that nothing is expected for, other than `but`, make
  // room, the oldest first.
  bool has_memory(std::uint64_t bytes, const InboundTransfer* but = nullptr);
  // The same, and nothing makes room.
  [[nodiscard]] bool has_room(std::uint64_t bytes) const { return !purse_ || purse_->has(bytes); }
  // Forgets one of those. False: there is none.
  bool forget_oldest() { return transfers_.forget_oldest(); }
  // First byte of an incomplete Block that has not arrived: F_Offset of a repeated CTS.
  [[nodiscard]] std::uint32_t first_missing(const InboundBlock& block) const;
  [[nodiscard]] std::uint32_t first_missing(std::uint32_t r_id, std::uint32_t b_num) const;
  // An MRA leaves. Same results.
  int open_region(const wire::MemoryRegionAvailable& mra);
  // The Transfer or region `r_id` has ended; its DATA is dropped from now on.
  void end(std::uint32_t r_id);
  // One that the peer calls `i_id`, and that is not over. False: there is none.
  bool find_initiated(std::uint32_t i_id, std::uint32_t& r_id) const {
    return transfers_.find_initiated(i_id, r_id);
  }
  // A Get or FetchOp leaves: its answer may be placed. 0 (also when repeated), -ENOBUFS, or
  // -EALREADY: its answer has come, or was given up; a repeat must not open its landing again.
  // `value`: what comes is a number, a FetchOp's.
  int expect(const wire::Get& get, std::uint64_t length, bool value);
  void unexpect(std::uint32_t r_id, std::uint32_t g_num);
  // The end of all of them. What they were is with the result.
  InboundRemains clear();
  // Takes down up to `most` pieces of what has ended; whether there is more.
  std::size_t tidy(std::size_t most) { return remains_.dismantle(most); }
  [[nodiscard]] bool untidy() const { return !remains_.empty(); }

  // Whether an STU of `length` bytes is a whole Put Block, and may be placed: of such a Block there
  // is nothing to remember but that it has come. False: find() tells.
  bool find_whole(const wire::DataView& data, std::size_t length, InboundTransfer*& out) const;
  // The Block that an STU of `length` bytes belongs to; or why it must be dropped.
  DropReason find(const wire::DataView& data, std::size_t length, InboundBlock*& out);
  // `length` bytes of it have been placed, of a sending that carries `sync`. True: something of it
  // had been lost.
  bool progress(InboundBlock& block, std::size_t length, std::uint32_t sync, Time now);
  // `block` is complete. The reference dies.
  void complete(InboundBlock& block);
  // Scheduled Blocks that are granted and not complete, in the order of their grants: those that
  // others have overtaken come first. nullptr: there is none.
  [[nodiscard]] GrantedBlock* first_open() { return skip_ended(open_.first()); }
  [[nodiscard]] GrantedBlock* open_after(const GrantedBlock& block) {
    return skip_ended(open_.after(block));
  }
  // What was granted and has not arrived, and since when nothing has.
  [[nodiscard]] std::uint64_t outstanding() const { return account_.outstanding(); }
  [[nodiscard]] Time silent_since() const { return silent_since_; }
  // It does not count until something arrives.
  void write_off() { account_.write_off(); }
  // When anything has arrived.
  [[nodiscard]] Time last_arrival() const { return last_arrival_; }
  // Whether something has arrived that was granted after `block` was.
  [[nodiscard]] bool overtaken(const InboundBlock& block) const {
    return block.serial < latest_serial_;
  }
  // The CTS of one that was overtaken leaves again: a grant like any other from now on.
  void grant_again(GrantedBlock& block) {
    STP_ASSERT(block.linked() && !block.transfer->over, "what is granted again is still open");
    block.overtaken = true;
    block.serial = ++next_serial_;
    block.unlink();
    open_.push_back(block);
  }
  // Nothing having come at all, as many CTS leave again as silence() says.
  void ask_in_silence() { silence_.asked(next_serial_); }
  [[nodiscard]] const Silence& silence() const { return silence_; }

  [[nodiscard]] const InboundTransfer* transfer(std::uint32_t r_id) const;

 private:
  struct Offer {
    std::uint32_t i_id;
    std::uint64_t t_len;
    unsigned max_block;
    bool fresh;  // came when no unfinished Transfer had this I_id: a CTS begins a new one
  };
  static constexpr std::size_t kMaxOffers = 64;

  static std::uint64_t key(std::uint32_t r_id, std::uint32_t b_num) {
    return std::uint64_t{r_id} << 32 | b_num;
  }
  struct Ended {
    std::uint32_t i_id, r_id;
  };
  static constexpr std::size_t kMaxEnded = 64;

  void forget_ended(std::uint32_t i_id) {
    std::erase_if(ended_, [&](const Ended& e) { return e.i_id == i_id; });
  }
  [[nodiscard]] bool has_ended(std::uint32_t i_id, std::uint32_t r_id) const;
  [[nodiscard]] bool get_is_over(std::uint32_t g_num);
  [[nodiscard]] const Offer* find_offer(std::uint32_t i_id) const;
  bool is_answer(const wire::DataView& data, std::size_t length, InboundBlock*& out);
  DropReason find_granted(const wire::DataView& data, InboundBlock*& out);
  static InboundBlock& place_of(InboundTransfer& region, std::uint32_t b_num);
  void drop_block(const GrantedBlock& block);
  int begin(const wire::ClearToSend& cts, InboundTransfer*& out);
  // Blocks of a Transfer that has ended stand in the list until they are taken down.
  GrantedBlock* skip_ended(GrantedBlock* block) {
    while (block != nullptr && block->transfer->over) {
      STP_ASSERT(recent_ != block, "no STU finds a Block of a Transfer that has ended");
      auto* const next = open_.after(*block);
      block->unlink();
      block = next;
      work::count("Blocks of ended Transfers");
    }
    return block;
  }

  std::shared_ptr<WindowPurse> purse_;  // goes last: what is below gives back to it
  unsigned bufsize_ = 14, stu_log2_ = 10;
  bool reuses_ids_ = true;
  InboundRemains remains_;
  TransferTable transfers_;
  LinkedList<GrantedBlock, InOrderOfGrant> open_;         // scheduled
  std::size_t open_count_ = 0;                            // of Transfers that have not ended
  std::unordered_map<std::uint64_t, InboundBlock> gets_;  // by (R_id, G_num)
  InboundBlock* recent_ = nullptr;                        // scheduled: STUs of a Block come in runs
  std::vector<Offer> offers_;
  std::size_t next_offer_ = 0;
  std::vector<Ended> ended_;  // by ENDs that no EA has answered yet: the newest
  // G_nums of ours that are over: the newest that left, and bit n for n before it.
  bool any_get_ = false;
  std::uint32_t newest_get_ = 0;
  std::uint64_t gets_over_ = 0;
  std::uint64_t tracked_ = 0;  // STUs that all maps can hold
  std::uint64_t next_serial_ = 0;
  std::uint64_t latest_serial_ = 0;  // the latest grant of which something has arrived
  Time last_arrival_ = 0;
  Time silent_since_ = 0;  // of a connection that waits for DATA
  Silence silence_;
  GrantAccount account_;
};

}  // namespace stp
