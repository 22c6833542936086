// SPDX-License-Identifier: BSD-3-Clause
// The memory that a connection's peer may write: its offers, the Blocks and answers that are
// expected, and what it means that they do not arrive (sections 7 to 10).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"
#include "stp/counters.h"
#include "stp/node/inbound/inbound_block.h"
#include "stp/node/inbound/inbound_transfer.h"
#include "stp/node/inbound/path.h"
#include "stp/types.h"
#include "stp/wire/operations.h"

namespace stp {

// The peer's offers (RTS) and ENDs, by its own ids (I_ids). A grant is checked against the offer,
// and nothing is granted for an ended Transfer. Both tables are bounded and drop the oldest entry.
class PeerRequests {
 public:
  static constexpr std::size_t kMaxOffers = 64, kMaxEnded = 64;

  // A Request_To_Send.
  struct Offer {
    std::uint32_t i_id = 0;
    std::uint64_t t_len = 0;
    unsigned max_block = 0;
    bool fresh = false;  // no CTS has started its Transfer yet
  };

  // An RTS arrived. `repeated`: its Transfer is already under way.
  void offered(const wire::RequestToSend& rts, bool repeated) {
    const Offer offer{rts.i_id, rts.t_len, rts.max_block, !repeated};
    if (auto* const known = find(rts.i_id)) {
      *known = offer;
    } else if (offers_.size() < kMaxOffers) {
      offers_.push_back(offer);
    } else {
      offers_[next_offer_++ % kMaxOffers] = offer;
    }
  }
  // The offer that the peer calls `i_id`; nullptr: none, or too long ago.
  [[nodiscard]] const Offer* offer(std::uint32_t i_id) const {
    return const_cast<PeerRequests*>(this)->find(i_id);
  }
  // A CTS starts the Transfer of `i_id`. Its offer is no longer fresh.
  void begun(std::uint32_t i_id) {
    if (auto* const known = find(i_id)) known->fresh = false;
  }

  // The peer sent END: it calls the Transfer `i_id`; we call it `r_id` (kNoId: the peer does not
  // know).
  void ended(std::uint32_t i_id, std::uint32_t r_id) {
    forget_ended(i_id);
    if (ended_.size() == kMaxEnded) ended_.erase(ended_.begin());
    ended_.push_back({i_id, r_id});
    work::count("ENDs", ended_.size());
  }
  // Forgets the END of `i_id`: the peer reuses the id, or our user has seen the END.
  void forget_ended(std::uint32_t i_id) {
    std::erase_if(ended_, [&](const Ended& e) { return e.i_id == i_id; });
  }
  // protocol: 7.12
  [[nodiscard]] bool has_ended(std::uint32_t i_id, std::uint32_t r_id) const {
    return std::ranges::any_of(ended_, [&](const Ended& e) {
      return e.i_id == i_id && (e.r_id == wire::kNoId || e.r_id == r_id);
    });
  }

  void clear() {
    offers_.clear();
    ended_.clear();
  }

 private:
  struct Ended {
    std::uint32_t i_id, r_id;
  };

  Offer* find(std::uint32_t i_id) {
    work::count("Requests_To_Send", offers_.size());
    const auto found = std::find_if(offers_.begin(), offers_.end(),
                                    [&](const Offer& o) { return o.i_id == i_id; });
    return found == offers_.end() ? nullptr : &*found;
  }

  std::vector<Offer> offers_;
  std::size_t next_offer_ = 0;
  std::vector<Ended> ended_;  // the newest ENDs not yet answered by EA
};

// How far STUs of a connection fall behind others on their way. What is farther behind is lost, and
// is asked for without waiting (docs/protocol.md, 10.22).
class Reordering {
 public:
  // STUs.
  static constexpr std::uint32_t kLeast = 8, kMost = 1024;
  // After so many requests that were needed, half the distance is tried again.
  static constexpr std::uint32_t kNeeded = 64;

  // What is at least so many STUs behind others is lost.
  [[nodiscard]] std::uint32_t distance() const { return 1U << log2_; }
  // Something was asked for because it was that far behind.
  void asked() {
    asked_ = true;
    if (++needed_ < kNeeded) return;
    needed_ = 0;
    if (distance() > kLeast) --log2_;
  }
  // Something counts as lost because it was that far behind, and was not asked for yet.
  void counted() { asked_ = true; }
  // It has come by itself, so it had only fallen behind.
  void came_late() {
    if (!asked_) return;
    asked_ = false;
    needed_ = 0;
    if (distance() < kMost) ++log2_;
  }

 private:
  std::uint8_t log2_ = std::countr_zero(kLeast);
  std::uint8_t needed_ = 0;
  bool asked_ = false;  // or counted, since it last came late
};

// The largest value of the last second or two.
class RecentMaximum {
 public:
  void note(Time value, Time now) {
    if (now - since_ >= kSecond) {
      before_ = now - since_ >= 2 * kSecond ? 0 : present_;
      present_ = 0;
      since_ = now;
    }
    present_ = std::max(present_, value);
  }
  [[nodiscard]] Time longest() const { return std::max(before_, present_); }

 private:
  Time since_ = 0, before_ = 0, present_ = 0;
};

// Interprets silence on a connection that waits for DATA: either STUs were lost, or the sender has
// not been scheduled on a core. Only a few Blocks are requested again until an answer shows which.
// Grants have serial numbers. "Asked for" means that the Block's CTS was repeated.
// protocol: 10.13, 10.14
class Silence {
 public:
  // The number of Blocks to request again when the silence has lasted too long.
  [[nodiscard]] unsigned asks() const { return asks_; }
  // Their CTS were repeated; `newest` is the latest grant.
  void asked(std::uint64_t newest) {
    STP_ASSERT(newest >= asked_until_, "serial numbers of grants count up");
    asked_until_ = newest;
    lasted_ = 0;
  }
  // An STU of the Block with the grant `serial` arrived after a silence of `pause`.
  void broken(std::uint64_t serial, bool asked_for, Time pause, Time now) {
    if (asked_until_ != 0) return answered(serial, asked_for, pause, now);
    if (!asked_for) pauses_.note(pause, now);
  }
  // The longest silence of the last second or two in which nothing was lost.
  [[nodiscard]] Time longest_pause() const { return pauses_.longest(); }

 private:
  static constexpr unsigned kMostAsked = 64;

  // A Block that was granted before the repeats but not asked for again shows that all of them were
  // on their way: a sender keeps the order of the CTS.
  void answered(std::uint64_t serial, bool asked_for, Time pause, Time now) {
    if (lasted_ == 0) {
      lasted_ = std::max<Time>(pause, 1);
      if (asked_for) asks_ = std::min(2 * asks_, kMostAsked);
    }
    STP_ASSERT(asks_ >= 1 && asks_ <= kMostAsked, "one Block at least is asked for, and not all");
    if (asked_for) return;
    if (serial <= asked_until_) pauses_.note(lasted_, now);
    asks_ = 1;
    asked_until_ = 0;
  }

  RecentMaximum pauses_;
  unsigned asks_ = 1;
  std::uint64_t asked_until_ = 0;  // 0: no question is open
  Time lasted_ = 0;                // 0: the silence lasts
};

// The granted, incomplete scheduled Blocks of a connection, in the order of their grants. Records
// which of them later Blocks have overtaken, since when nothing has arrived, and what the silence
// means (section 10).
class OpenBlocks {
 public:
  // The Blocks of Transfers that have not ended.
  [[nodiscard]] std::size_t count() const { return count_; }
  // A Block was granted. `first`: nothing else is outstanding, so the silence begins now.
  void granted(GrantedBlock& block, bool first, Time now) {
    ++count_;
    if (block.parts != nullptr) return granted_part(block, 0, first, now);
    block.whole = {.serial = ++next_serial_, .left = now};
    append(block, first, now);
  }
  // A part of `block` was granted, from STU `from` on. Others that were granted before must have
  // come first.
  // protocol: 13.19
  void granted_part(GrantedBlock& block, std::uint32_t from, bool first, Time now) {
    block.parts->add(
        {.serial = ++next_serial_, .left = now, .first = static_cast<std::uint16_t>(from)});
    append(block, first, now);
  }
  // All that was granted of `block` has arrived: there is nothing to ask for.
  static void waits_for_grant(GrantedBlock& block) { block.unlink(); }
  // `blocks` of them are complete, were granted again, or belong to an ended Transfer.
  void closed(std::size_t blocks) {
    STP_ASSERT(blocks <= count_, "a Block that is closed was open");
    count_ -= static_cast<std::uint32_t>(blocks);
  }
  // All have ended. They leave the list when destroyed.
  void clear() {
    list_.disband();
    count_ = 0;
  }

  // An STU of `block` arrived, which was asked for by `grant`, from a sending with the Sync `sync`.
  // True: an earlier sending lost part of what was granted.
  // Each sending has its own Sync: more STUs of the sending that had begun do not answer a repeated
  // CTS. If no STU had arrived, the CTS was lost, or nothing at all, unless later Blocks overtook
  // it (docs/protocol.md, 10.14).
  bool arrived(InboundBlock& block, Grant& grant, std::uint32_t sync, Time now) {
    STP_ASSERT(grant.serial != 0 && grant.serial <= next_serial_, "a granted Block has a number");
    const bool begun = grant.begun, repeated = grant.repeated;
    if (repeated) grant.asked_for = !begun || sync != grant.sync;
    const bool lost = repeated && grant.asked_for && (begun || block.overtaken);
    if (repeated) {
      if (!grant.asked_for) reordering_.came_late();
      grant.unsure = !begun || !grant.asked_for;
    }
    silence_.broken(grant.serial, grant.asked_for, now - silent_since_, now);
    silent_since_ = now;
    block.progress = now;
    block.repeats = 0;
    block.overtaken = false;
    grant.begun = true;
    grant.repeated = false;
    grant.sync = sync;
    latest_serial_ = std::max(latest_serial_, grant.serial);
    return lost;
  }

  // Iterates in the order of grants, so overtaken Blocks come first. nullptr: no more.
  [[nodiscard]] GrantedBlock* first() { return skip_ended(list_.first()); }
  [[nodiscard]] GrantedBlock* after(const GrantedBlock& block) {
    return skip_ended(list_.after(block));
  }
  // Whether an STU of a Block granted after `block` has arrived.
  [[nodiscard]] bool overtaken(const InboundBlock& block) const {
    return block.newest_grant().serial < latest_serial_;
  }
  // `complete` has all its STUs. True: a Block granted earlier lacks some, and is so far behind
  // that they are lost.
  bool passed_by(InboundBlock& complete) {
    const auto& newest = complete.newest_grant();
    // The STU that completes it may be of another part.
    if (newest.unsure || complete.grant_of(complete.stus.newest()).unsure) return false;
    const auto stus = std::max<std::uint64_t>(complete.stus.placed() - newest.first, 1);
    const auto blocks = (reordering_.distance() + stus - 1) / stus;
    if (newest.serial <= passed_serial_ + blocks) return false;
    passed_serial_ = newest.serial - blocks;
    const auto* const first = list_.first();
    return first != nullptr && lost(*first);
  }
  // Whether what is missing of `block` is lost, because others that were granted later are
  // complete.
  [[nodiscard]] bool lost(const InboundBlock& block) const {
    return block.newest_grant().serial <= passed_serial_;
  }
  // The Last of `block` has arrived. True: an STU before it has not, and is so far behind that it
  // is lost.
  [[nodiscard]] bool lost_before_last(const InboundBlock& block) const {
    return !block.newest_grant().unsure &&
           block.stus.first_missing() + reordering_.distance() <= block.last.param;
  }
  // An STU of `block`, which is granted in parts, has come. True: another one is so far behind it
  // that it is lost, and that was not known.
  // protocol: 10.22, 13.12
  [[nodiscard]] bool shows_loss(InboundBlock& block) {
    const auto newest = block.stus.newest();
    auto& parts = *block.parts;
    if (newest < parts.lost_before() && parts.of(newest).asked_once()) reordering_.came_late();
    if (newest < reordering_.distance()) return false;
    const auto until = newest - reordering_.distance() + 1;
    const bool lost = block.stus.misses(parts.lost_before(until), until);
    if (lost) {
      parts.told_path = true;
      reordering_.counted();
    }
    return lost;
  }
  // The first STU of a Block has come once more.
  void came_twice() { reordering_.came_late(); }
  // What is missing of `block` is asked for. Whether the path knows already that it is lost.
  // protocol: 13.12
  [[nodiscard]] static bool told_path(const InboundBlock& block, const Tiles& tiles) {
    auto* const parts = block.parts.get();
    return parts != nullptr && std::exchange(parts->told_path, false) &&
           !block.stus.misses(parts->lost_before(), block.granted_stus(tiles));
  }
  // The CTS of `block` is repeated: nobody knows any more which CTS brings what.
  static void repeated(InboundBlock& block, Time now) {
    ++block.repeats;
    block.progress = now;
    for (auto& grant : block.grants()) {
      grant.repeated = true;
      grant.left = 0;
    }
  }
  // Repeats the CTS of an overtaken Block, which counts as a new grant from now on.
  void grant_again(GrantedBlock& block) {
    STP_ASSERT(block.linked() && !block.transfer->over, "what is granted again is still open");
    if (lost(block)) reordering_.asked();
    block.overtaken = true;
    ++next_serial_;
    for (auto& grant : block.grants()) grant.serial = next_serial_;
    block.unlink();
    list_.push_back(block);
  }
  // The same for a Block of which lost_before_last() is true.
  void grant_rest_again(GrantedBlock& block) {
    if (!lost(block)) reordering_.asked();
    grant_again(block);
  }
  // Nothing has arrived at all: silence().asks() CTS are repeated.
  void ask_in_silence() { silence_.asked(next_serial_); }
  [[nodiscard]] const Silence& silence() const { return silence_; }
  // Nothing has arrived since then, though Blocks are outstanding: when anything last arrived, or
  // the first of them was granted.
  [[nodiscard]] Time silent_since() const { return silent_since_; }

 private:
  // `block` has the newest grant.
  void append(GrantedBlock& block, bool first, Time now) {
    block.unlink();
    block.progress = now;
    list_.push_back(block);
    if (first) silent_since_ = now;
  }
  // Blocks of an ended Transfer stay in the list until they are freed.
  GrantedBlock* skip_ended(GrantedBlock* block) {
    while (block != nullptr && block->transfer->over) {
      auto* const next = list_.after(*block);
      block->unlink();
      block = next;
      work::count("Blocks of ended Transfers");
    }
    return block;
  }

  LinkedList<GrantedBlock, InOrderOfGrant> list_;
  std::uint32_t count_ = 0;
  Reordering reordering_;
  std::uint64_t next_serial_ = 0;
  std::uint64_t latest_serial_ = 0;  // the latest grant of which an STU has arrived
  std::uint64_t passed_serial_ = 0;  // what was granted until then and is not here is lost
  Time silent_since_ = 0;
  Silence silence_;
};

// The answers to a user's Gets and FetchOps: where each may land, until it arrives or is given up.
// A finished answer is not expected again, however often its request is repeated.
class ExpectedAnswers {
 public:
  static constexpr std::size_t kMost = 64;

  // A Get or FetchOp leaves: expects its answer of `length` bytes at the place it names. `value`:
  // the answer is a FetchOp's number. Returns 0 (also for a repeat), -ENOBUFS (kMost are expected),
  // or -EALREADY (the answer arrived or was given up).
  int expect(const wire::Get& get, std::uint64_t length, bool value, const Tiles& tiles);
  // The answer arrived completely, was refused, or is given up.
  void forget(std::uint32_t r_id, std::uint32_t g_num);
  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  // The answer that an STU of `length` bytes belongs to; nullptr: none.
  [[nodiscard]] InboundBlock* find(const wire::DataView& data, std::size_t length,
                                   const Tiles& tiles);
  void clear();

 private:
  static std::uint64_t key(std::uint32_t r_id, std::uint32_t g_num) {
    return std::uint64_t{r_id} << 32 | g_num;
  }
  [[nodiscard]] bool is_over(std::uint32_t g_num);

  std::unordered_map<std::uint64_t, InboundBlock> blocks_;  // by (R_id, G_num)
  // Finished G_nums of ours: the newest that left, and bit n for the G_num n before it.
  bool any_ = false;
  std::uint32_t newest_ = 0;
  std::uint64_t over_ = 0;
};

// The memory that a connection's peer may write: Blocks granted by CTS and regions opened by MRA
// (section 7). Records which of their STUs and Blocks have arrived (section 8).
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
  // the most bytes to grant, if less than T_len and Blocksize allow. `part`: as many STUs of it, or
  // more than had been granted; 0: all at once.
  // protocol: 13.19
  int grant(const wire::ClearToSend& cts, std::uint64_t limit, Time now, std::uint32_t part = 0);
  // A Block that has been granted, at least a part of it, and is incomplete. nullptr: none.
  [[nodiscard]] const InboundBlock* granted(std::uint32_t r_id, std::uint32_t b_num) const;
  // The bytes that a CTS would grant, and those that its Transfer lacks from there on; 0 if it
  // would be refused or grants nothing new. `memory`: the bytes needed to track them.
  struct Demand {
    std::uint64_t bytes = 0, remaining = 0, memory = 0;
  };
  // `in_parts`: it may be granted so.
  [[nodiscard]] Demand demand(const wire::ClearToSend& cts, bool in_parts = false) const;
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
  // Brings what a received Block needs into the caches: of this object, and then of the region that
  // the last one was for.
  void fetch_ahead() const { fetch_line(&tiles_); }
  void fetch_region_ahead() const { transfers_.fetch_ahead(); }

 private:
  void tell_account(InboundBlock& block, const Grant& grant, bool begun, std::size_t length,
                    Time now);
  DropReason find_granted(const wire::DataView& data, InboundBlock*& out);
  static InboundBlock& place_of(InboundTransfer& region, std::uint32_t b_num);
  void drop_block(const GrantedBlock& block);
  int begin(const wire::ClearToSend& cts, InboundTransfer*& out);
  void grant_more(GrantedBlock& block, std::uint32_t stus, Time now);

  std::shared_ptr<WindowPurse> purse_;  // destroyed last: the members below return memory to it
  InboundRemains remains_;
  PeerRequests requests_;
  OpenBlocks open_;
  GrantAccount account_;
  TransferTable transfers_;  // each received Block needs its end, and the beginning of what follows
  Tiles tiles_;
  ExpectedAnswers answers_;
  InboundBlock* recent_ = nullptr;  // scheduled: consecutive STUs are mostly of one Block
  std::uint64_t tracked_ = 0;       // capacity of all maps, in STUs
  bool reuses_ids_ = true;
};

}  // namespace stp
