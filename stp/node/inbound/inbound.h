// SPDX-License-Identifier: BSD-3-Clause
// The memory that a connection's peer may write: Blocks granted by CTS and regions opened by MRA
// (section 7). Records which of their STUs and Blocks have arrived (section 8).
#pragma once

#include <cstdint>
#include <memory>

#include "stp/drop_reason.h"
#include "stp/node/inbound/expected_answers.h"
#include "stp/node/inbound/grant_account.h"
#include "stp/node/inbound/inbound_remains.h"
#include "stp/node/inbound/inbound_transfer.h"
#include "stp/node/inbound/open_blocks.h"
#include "stp/node/inbound/peer_requests.h"
#include "stp/types.h"

namespace stp {

class Inbound {
 public:
  // Limits of what one connection can make a Node keep.
  // protocol: 7.14
  static constexpr std::size_t kMaxWindow = 1024;
  static constexpr std::uint64_t kMaxTrackedStus = std::uint64_t{1} << 24;
  static constexpr std::uint32_t kMaxStusOfBlock = 65'535;
  static constexpr std::size_t kMaxOpenBlocks = 4096;

  // `reuses_ids`: the user may begin a new Transfer with the ids of a finished one. `purse` pays
  // for the memory used here; without one there is no limit.
  void configure(const Tiles& tiles, bool reuses_ids, GrantAccount account,
                 std::shared_ptr<WindowPurse> purse = {});

  // A Request_To_Send arrived: its T_len and Max_Block bound what a CTS for it grants.
  void offered(const wire::RequestToSend& rts) {
    requests_.offered(rts, transfers_.under_way(rts.i_id, rts.t_len));
  }
  // The peer's offers and ENDs. A CTS or MRA that our user queued before it saw an END grants
  // nothing.
  PeerRequests& requests() { return requests_; }
  // A CTS leaves. Returns 0 (also if it repeats a grant, or names a complete Block), -EINVAL
  // (Blocksize changed, or more than the RTS or an STU number allows; no such Block), -ENOBUFS,
  // -EDQUOT (its owner's budget has no memory for it), -EALREADY (the peer has ended it). `limit`:
  // the most bytes to grant, if less than T_len and Blocksize allow.
  int grant(const wire::ClearToSend& cts, std::uint64_t limit, Time now);
  // What pacing is charged for the bytes that a CTS would grant, and the bytes that its Transfer
  // lacks from there on; 0 if it would be refused or grants nothing new. `memory`: the bytes needed
  // to track them. `bytes`: those that it would grant.
  struct Demand {
    std::uint64_t charge = 0, remaining = 0, memory = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Demand demand(const wire::ClearToSend& cts) const;
  // Whether `bytes` of memory are available. If not, forgets Transfers with nothing outstanding,
  // except `but`, oldest first.
  bool has_memory(std::uint64_t bytes, const InboundTransfer* but = nullptr);
  // Like has_memory(), but forgets nothing.
  [[nodiscard]] bool has_room(std::uint64_t bytes) const { return !purse_ || purse_->has(bytes); }
  // Forgets the oldest Transfer with nothing outstanding. False: none.
  bool forget_oldest() { return transfers_.forget_oldest(); }
  // The first byte of an incomplete Block that has not arrived: the F_Offset of a repeated CTS. 0:
  // no such Block.
  [[nodiscard]] std::uint32_t first_missing(std::uint32_t r_id, std::uint32_t b_num) const;
  // An MRA leaves. Same results as grant().
  int open_region(const wire::MemoryRegionAvailable& mra);
  // Ends the Transfer or region `r_id`: its DATA is dropped from now on.
  void end(std::uint32_t r_id);
  // Finds the Transfer or region that the peer calls `i_id` and that has not ended. False: none.
  bool find_initiated(std::uint32_t i_id, std::uint32_t& r_id) const {
    return transfers_.find_initiated(i_id, r_id);
  }
  // The answers to the user's own Gets and FetchOps.
  ExpectedAnswers& answers() { return answers_; }
  [[nodiscard]] const Tiles& tiles() const { return tiles_; }
  // Ends all Transfers and regions. The result holds their memory.
  InboundRemains clear();
  // Frees up to `most` pieces of ended Transfers. Returns how many.
  std::size_t tidy(std::size_t most) { return remains_.dismantle(most); }
  [[nodiscard]] bool untidy() const { return !remains_.empty(); }

  // Whether an STU of `length` bytes is a whole Put Block and may be placed: for such a Block only
  // its completion is recorded. False: call find().
  bool find_whole(const wire::DataView& data, std::size_t length, InboundTransfer*& out) const;
  // Finds the Block that an STU of `length` bytes belongs to, or returns the reason to drop it.
  DropReason find(const wire::DataView& data, std::size_t length, InboundBlock*& out);
  // `length` bytes of `block` have been placed, from a sending with the Sync `sync`. True: an
  // earlier sending lost part of the Block.
  bool progress(InboundBlock& block, std::size_t length, std::uint32_t sync, Time now);
  // `block` is complete. The reference becomes invalid. True: a Block that it has passed is lost.
  // protocol: 10.22
  bool complete(InboundBlock& block);
  // Scheduled Blocks that are granted and incomplete.
  OpenBlocks& open_blocks() { return open_; }
  [[nodiscard]] const OpenBlocks& open_blocks() const { return open_; }
  // Bytes granted that have not arrived.
  [[nodiscard]] std::uint64_t outstanding() const { return account_.outstanding(); }
  GrantAccount& account() { return account_; }
  [[nodiscard]] const GrantAccount& account() const { return account_; }
  [[nodiscard]] const InboundTransfer* transfer(std::uint32_t r_id) const;

 private:
  void tell_path(const InboundBlock& block, std::size_t length, Time now) const;
  DropReason find_granted(const wire::DataView& data, InboundBlock*& out);
  static InboundBlock& place_of(InboundTransfer& region, std::uint32_t b_num);
  void drop_block(const GrantedBlock& block);
  int begin(const wire::ClearToSend& cts, InboundTransfer*& out);

  std::shared_ptr<WindowPurse> purse_;  // destroyed last: the members below return memory to it
  Tiles tiles_;
  bool reuses_ids_ = true;
  InboundRemains remains_;
  TransferTable transfers_;
  OpenBlocks open_;
  ExpectedAnswers answers_;
  InboundBlock* recent_ = nullptr;  // scheduled: consecutive STUs are mostly of one Block
  PeerRequests requests_;
  std::uint64_t tracked_ = 0;  // capacity of all maps, in STUs
  GrantAccount account_;
};

}  // namespace stp
