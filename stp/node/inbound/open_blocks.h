// SPDX-License-Identifier: BSD-3-Clause
// The granted, incomplete scheduled Blocks of a connection, in the order of their grants. Records
// which of them later Blocks have overtaken, since when nothing has arrived, and what the silence
// means (section 10).
#pragma once

#include <algorithm>
#include <cstdint>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"
#include "stp/node/inbound/inbound_transfer.h"
#include "stp/node/inbound/reordering.h"
#include "stp/node/inbound/silence.h"

namespace stp {

class OpenBlocks {
 public:
  // The Blocks of Transfers that have not ended.
  [[nodiscard]] std::size_t count() const { return count_; }
  // A Block was granted. `first`: nothing else is outstanding, so the silence begins now.
  void granted(GrantedBlock& block, bool first, Time now) {
    block.serial = ++next_serial_;
    block.progress = now;
    list_.push_back(block);
    ++count_;
    if (first) silent_since_ = now;
  }
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

  // An STU of `block` arrived, from a sending with the Sync `sync`. `begun`: other STUs of it
  // arrived before. True: an earlier sending lost part of the Block.
  // Each sending of a Block has its own Sync: more STUs of the sending that had begun do not answer
  // a repeated CTS. If no STU had arrived, the CTS was lost, or nothing at all, unless later Blocks
  // overtook it (docs/protocol.md, 10.14).
  bool arrived(InboundBlock& block, bool begun, std::uint32_t sync, Time now) {
    STP_ASSERT(block.serial != 0 && block.serial <= next_serial_, "a granted Block has a number");
    if (block.repeats != 0) block.asked_for = !begun || sync != block.sync;
    const bool lost = block.repeats != 0 && block.asked_for && (begun || block.overtaken);
    if (block.repeats != 0) {
      if (!block.asked_for) reordering_.came_late();
      block.unsure = !begun || !block.asked_for;
    }
    silence_.broken(block.serial, block.asked_for, now - silent_since_, now);
    silent_since_ = now;
    block.progress = now;
    block.repeats = 0;
    block.overtaken = false;
    block.sync = sync;
    latest_serial_ = std::max(latest_serial_, block.serial);
    return lost;
  }

  // Iterates in the order of grants, so overtaken Blocks come first. nullptr: no more.
  [[nodiscard]] GrantedBlock* first() { return skip_ended(list_.first()); }
  [[nodiscard]] GrantedBlock* after(const GrantedBlock& block) {
    return skip_ended(list_.after(block));
  }
  // Whether an STU of a Block granted after `block` has arrived.
  [[nodiscard]] bool overtaken(const InboundBlock& block) const {
    return block.serial < latest_serial_;
  }
  // `complete` has all its STUs. True: a Block granted earlier lacks some, and is so far behind
  // that they are lost.
  bool passed_by(const InboundBlock& complete) {
    if (complete.unsure) return false;
    const auto stus = std::max<std::uint64_t>(complete.stus.placed(), 1);
    const auto blocks = (reordering_.distance() + stus - 1) / stus;
    if (complete.serial <= passed_serial_ + blocks) return false;
    passed_serial_ = complete.serial - blocks;
    const auto* const first = list_.first();
    return first != nullptr && lost(*first);
  }
  // Whether what is missing of `block` is lost, because others that were granted later are
  // complete.
  [[nodiscard]] bool lost(const InboundBlock& block) const {
    return block.serial <= passed_serial_;
  }
  // The first STU of a Block has come once more.
  void came_twice() { reordering_.came_late(); }
  // Repeats the CTS of an overtaken Block, which counts as a new grant from now on.
  void grant_again(GrantedBlock& block) {
    STP_ASSERT(block.linked() && !block.transfer->over, "what is granted again is still open");
    if (lost(block)) reordering_.asked();
    block.overtaken = true;
    block.serial = ++next_serial_;
    block.unlink();
    list_.push_back(block);
  }
  // Nothing has arrived at all: silence().asks() CTS are repeated.
  void ask_in_silence() { silence_.asked(next_serial_); }
  [[nodiscard]] const Silence& silence() const { return silence_; }
  // Nothing has arrived since then, though Blocks are outstanding: when anything last arrived, or
  // the first of them was granted.
  [[nodiscard]] Time silent_since() const { return silent_since_; }

 private:
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

}  // namespace stp
