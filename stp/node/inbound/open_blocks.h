// SPDX-License-Identifier: BSD-3-Clause
// The scheduled Blocks of a connection that are granted and not complete, in the order of their
// grants: which of them others have overtaken, since when nothing has come, and what the silence
// says (section 10).
#pragma once

#include <algorithm>
#include <cstdint>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"
#include "stp/node/inbound/inbound_transfer.h"
#include "stp/node/inbound/silence.h"

namespace stp {

class OpenBlocks {
 public:
  // Those of Transfers that have not ended.
  [[nodiscard]] std::size_t count() const { return count_; }
  // A Block was granted. `first`: nothing else is outstanding, so that its silence begins now.
  void granted(GrantedBlock& block, bool first, Time now) {
    block.serial = ++next_serial_;
    block.progress = now;
    list_.push_back(block);
    ++count_;
    if (first) silent_since_ = now;
  }
  // `blocks` of them are complete, were granted anew, or belong to a Transfer that has ended.
  void closed(std::size_t blocks) {
    STP_ASSERT(blocks <= count_, "a Block that is closed was open");
    count_ -= blocks;
  }
  // All are over. They leave the list when they are destroyed.
  void clear() {
    list_.disband();
    count_ = 0;
  }

  // An STU of `block` has come, of a sending that carries `sync`. `begun`: not the first of it.
  // True: something of the Block had been lost.
  // Each sending of a Block has a Sync of its own: more of the one that had begun was not asked
  // for. Of one of which nothing had come it is the CTS that was lost, or nothing at all, unless
  // others overtook it. protocol: 10.14
  bool arrived(InboundBlock& block, bool begun, std::uint32_t sync, Time now) {
    STP_ASSERT(block.serial != 0 && block.serial <= next_serial_, "a granted Block has a number");
    if (block.repeats != 0) block.asked_for = !begun || sync != block.sync;
    bool const lost = block.repeats != 0 && block.asked_for && (begun || block.overtaken);
    silence_.broken(block.serial, block.asked_for, now - silent_since_, now);
    silent_since_ = now;
    block.progress = now;
    block.repeats = 0;
    block.overtaken = false;
    block.sync = sync;
    latest_serial_ = std::max(latest_serial_, block.serial);
    last_arrival_ = now;
    return lost;
  }

  // In the order of their grants: those that others have overtaken come first. nullptr: there is
  // none.
  [[nodiscard]] GrantedBlock* first() { return skip_ended(list_.first()); }
  [[nodiscard]] GrantedBlock* after(const GrantedBlock& block) {
    return skip_ended(list_.after(block));
  }
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
    list_.push_back(block);
  }
  // Nothing having come at all, as many CTS leave again as silence() says.
  void ask_in_silence() { silence_.asked(next_serial_); }
  [[nodiscard]] const Silence& silence() const { return silence_; }
  // Nothing has come since then, though something is outstanding.
  [[nodiscard]] Time silent_since() const { return silent_since_; }
  // When anything has arrived.
  [[nodiscard]] Time last_arrival() const { return last_arrival_; }

 private:
  // Blocks of a Transfer that has ended stand in the list until they are taken down.
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
  std::size_t count_ = 0;
  std::uint64_t next_serial_ = 0;
  std::uint64_t latest_serial_ = 0;  // the latest grant of which something has arrived
  Time last_arrival_ = 0;
  Time silent_since_ = 0;
  Silence silence_;
};

}  // namespace stp
