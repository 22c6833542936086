// SPDX-License-Identifier: BSD-3-Clause
// What a connection's peer may write: the Blocks its user granted by CTS and the regions it opened
// by MRA (section 7), and which of their STUs and Blocks have come (section 8).
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
  // Bounds of what one connection can make a Node keep.
  // protocol: 7.14
  static constexpr std::size_t kMaxWindow = 1024;
  static constexpr std::uint64_t kMaxTrackedStus = std::uint64_t{1} << 24;
  static constexpr std::uint32_t kMaxStusOfBlock = 65'535;
  static constexpr std::size_t kMaxOpenBlocks = 4096;

  // `reuses_ids`: the user may begin a new Transfer with the ids of one that is over. `purse`: what
  // pays for the memory that all this takes; without one there is no bound.
  void configure(const Tiles& tiles, bool reuses_ids, const GrantAccount& account,
                 std::shared_ptr<WindowPurse> purse = {});

  // A Request_To_Send arrived: its T_len and Max_Block bound what a CTS for it grants.
  void offered(const wire::RequestToSend& rts) {
    requests_.offered(rts, transfers_.under_way(rts.i_id, rts.t_len));
  }
  // What has ended on the peer's side. Its user may have queued a CTS or MRA before it saw that:
  // they grant nothing.
  PeerRequests& requests() { return requests_; }
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
  // First byte of an incomplete Block that has not arrived: F_Offset of a repeated CTS. 0: there is
  // no such Block.
  [[nodiscard]] std::uint32_t first_missing(std::uint32_t r_id, std::uint32_t b_num) const;
  // An MRA leaves. Same results.
  int open_region(const wire::MemoryRegionAvailable& mra);
  // The Transfer or region `r_id` has ended; its DATA is dropped from now on.
  void end(std::uint32_t r_id);
  // One that the peer calls `i_id`, and that is not over. False: there is none.
  bool find_initiated(std::uint32_t i_id, std::uint32_t& r_id) const {
    return transfers_.find_initiated(i_id, r_id);
  }
  // What the user's own Gets and FetchOps bring.
  ExpectedAnswers& answers() { return answers_; }
  [[nodiscard]] const Tiles& tiles() const { return tiles_; }
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
  // Scheduled Blocks that are granted and not complete.
  OpenBlocks& open_blocks() { return open_; }
  [[nodiscard]] const OpenBlocks& open_blocks() const { return open_; }
  // What was granted and has not arrived.
  [[nodiscard]] std::uint64_t outstanding() const { return account_.outstanding(); }
  // It does not count until something arrives.
  void write_off() { account_.write_off(); }
  [[nodiscard]] const InboundTransfer* transfer(std::uint32_t r_id) const;

 private:
  DropReason find_granted(const wire::DataView& data, InboundBlock*& out);
  static InboundBlock& place_of(InboundTransfer& region, std::uint32_t b_num);
  void drop_block(const GrantedBlock& block);
  int begin(const wire::ClearToSend& cts, InboundTransfer*& out);

  std::shared_ptr<WindowPurse> purse_;  // goes last: what is below gives back to it
  Tiles tiles_;
  bool reuses_ids_ = true;
  InboundRemains remains_;
  TransferTable transfers_;
  OpenBlocks open_;
  ExpectedAnswers answers_;
  InboundBlock* recent_ = nullptr;  // scheduled: STUs of a Block come in runs
  PeerRequests requests_;
  std::uint64_t tracked_ = 0;  // STUs that all maps can hold
  GrantAccount account_;
};

}  // namespace stp
