// SPDX-License-Identifier: BSD-3-Clause
// The Node's end of a channel. It keeps its own copies of every index it owns and checks those it
// does not, so that whatever a user writes into the rings can only hurt that user.
#pragma once

#include <vector>

#include "stp/channel/layout.h"
#include "stp/types.h"

namespace stp {

class NodeChannel {
 public:
  NodeChannel() = default;
  // Lays the channel out in zeroed memory of geometry.size() bytes, aligned to a cache line.
  NodeChannel(std::byte* memory, const ChannelGeometry& geometry);

  [[nodiscard]] explicit operator bool() const { return control_ != nullptr; }
  [[nodiscard]] std::uint32_t slots() const { return slots_; }

  // Free Slots at this moment: what R_Slots says.
  [[nodiscard]] std::uint32_t free_slots();

  // Appends to the Schedule Header Queue. A kSlot entry needs a free Slot, a kReserve entry one of
  // the places beyond them. False: no room, nothing was written.
  enum class Place { kSlot, kReserve };
  bool deliver(const ReceivedEntry& entry, Place place);

  // Copies the oldest unsent request out of the transmit queue. False: there is none.
  bool peek(SendEntry& out);
  // The same, of a request without payload all that there is; of others the rest is not copied.
  struct Look {
    wire::Header header;
    std::uint32_t length, bufx, offset;
    std::uint8_t payload_length;
  };
  [[nodiscard]] bool look(Look& out) const {
    auto const waiting = control_->tx_head.load(std::memory_order_acquire) - tx_tail_;
    if (waiting == 0 || waiting > tx_mask_ + 1) return false;  // peek() tells which
    auto const& entry = tx_[tx_tail_ & tx_mask_];
    out = {entry.header, entry.length, entry.bufx, entry.offset, entry.payload_length};
    // A user may go on writing to the ring: nothing is read from there again.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return true;
  }
  // The request last peeked has been taken over; its ring entry is free for the user again.
  void pop();
  [[nodiscard]] std::uint32_t taken() const { return tx_tail_; }
  // Requests before `index` (as of taken()) no longer use the user's memory.
  void complete(std::uint32_t index);
  void count_refused(bool over_budget = false);
  // Drops all requests that are in the transmit queue at this moment, as refused.
  void refuse_all();
  void count_cts_repeated();

  void set_state(ChannelState state, int error = 0);
  [[nodiscard]] ChannelState state() const { return state_; }

  // The user's indices made no sense at some point: the channel must be ended.
  [[nodiscard]] bool broken() const { return broken_; }
  // Whether a user sleeps on the wake word. If so the word has been bumped, and the caller has to
  // wake the sleepers (a futex call, which stp/ leaves to others).
  bool needs_wake();
  // Whether its user sleeps, as far as is seen at a glance: it may be about to.
  [[nodiscard]] bool seems_asleep() const {
    return control_->sleepers.load(std::memory_order_relaxed) != 0;
  }
  // Its user looks at many channels, and wants to know at which.
  [[nodiscard]] bool gathered() const {
    return control_->gathered.load(std::memory_order_relaxed) != 0;
  }
  // The futex word.
  [[nodiscard]] std::atomic<std::uint32_t>* wake_word() { return &control_->wake; }

 private:
  // Entries that one look at what the user has read goes on by, where some hold no Slot.
  static constexpr std::uint32_t kLook = 4'096;
  [[gnu::noinline]] std::uint32_t pass_reserve(std::uint32_t tail);
  std::uint32_t queued();  // unread entries of the Schedule Header Queue
  std::uint64_t& reserve_word(std::uint32_t index) { return in_reserve_[(index & rx_mask_) / 64]; }
  static std::uint64_t reserve_bit(std::uint32_t index) { return std::uint64_t{1} << index % 64; }

  ChannelControl* control_ = nullptr;
  ReceivedEntry* rx_ = nullptr;
  SendEntry* tx_ = nullptr;
  std::uint32_t slots_ = 0;
  std::uint32_t rx_mask_ = 0, tx_mask_ = 0;
  std::uint32_t rx_head_ = 0, tx_tail_ = 0, refused_ = 0, over_budget_ = 0, cts_repeated_ = 0;
  std::uint32_t seen_tail_ = 0;  // how far the user had read at the last look
  // Which places of the ring hold no Slot, and how many of those are unread.
  std::vector<std::uint64_t> in_reserve_;
  std::uint32_t reserve_count_ = 0;
  ChannelState state_ = ChannelState::kConnecting;
  bool broken_ = false;
};

}  // namespace stp
