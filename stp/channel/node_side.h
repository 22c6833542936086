// SPDX-License-Identifier: BSD-3-Clause
// The Node's end of a channel. It keeps copies of the indices it owns and checks those it does not
// own, so whatever a user writes into the rings can hurt only that user.
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

  // Goes on in `memory`, zeroed and as large, that the user sees from now on; it has not seen the
  // present one. Copies what is in there: what a user has read or posted does not exist yet.
  void move_to(std::byte* memory);

  [[nodiscard]] explicit operator bool() const { return control_ != nullptr; }
  [[nodiscard]] std::uint32_t slots() const { return slots_; }

  // The number of free Slots now: the value of R_Slots.
  [[nodiscard]] std::uint32_t free_slots();

  // Appends to the Schedule Header Queue. A kSlot entry needs a free Slot; a kReserve entry needs
  // one of the reserved places. False: no room, nothing was written.
  enum class Place { kSlot, kReserve };
  bool deliver(const ReceivedEntry& entry, Place place);

  // Copies the oldest unsent request from the transmit queue. False: none.
  bool peek(SendEntry& out);
  // The same, but copies only part of a request with payload.
  struct Look {
    wire::Header header;
    std::uint32_t length, bufx, offset;
    std::uint16_t special;  // 0: it has no payload and is not limited
  };
  [[nodiscard]] bool look(Look& out) const {
    const auto waiting = control_->tx_head.load(std::memory_order_acquire) - tx_tail_;
    if (waiting == 0 || waiting > tx_mask_ + 1) return false;  // peek() distinguishes them
    const auto& entry = tx_[tx_tail_ & tx_mask_];
    out = {entry.header, entry.length, entry.bufx, entry.offset,
           static_cast<std::uint16_t>(entry.payload_length | entry.limited << 8)};
    // Stops further reads from the ring: a user may still write there.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return true;
  }
  // Removes the request last peeked.
  void skip() { ++tx_tail_; }
  // The user may reuse the entries of what was removed.
  void publish_taken() { control_->tx_tail.store(tx_tail_, std::memory_order_release); }
  [[nodiscard]] std::uint32_t taken() const { return tx_tail_; }
  // Requests before `index` (as of taken()) no longer use the user's memory.
  void complete(std::uint32_t index);
  void count_refused(bool over_budget = false);
  // Drops all requests now in the transmit queue, as refused.
  void refuse_all();
  void count_cts_repeated();
  // Blocks of 2^`log2` bytes suit the path from the peer.
  void suggest_block(unsigned log2) { control_->path_block.store(log2, std::memory_order_relaxed); }

  void set_state(ChannelState state, int error = 0);
  [[nodiscard]] ChannelState state() const { return state_; }

  // The user's indices were invalid at some point: end the channel.
  [[nodiscard]] bool broken() const { return broken_; }
  // Whether a user sleeps on the wake word. If so, increments the word; the caller must wake the
  // sleepers (a futex call, which stp/ leaves to others).
  bool needs_wake();
  // Whether the user seems to sleep, by a cheap check: it may be about to.
  [[nodiscard]] bool seems_asleep() const {
    return control_->sleepers.load(std::memory_order_relaxed) != 0;
  }
  // The user gathers many channels and wants to know which have news.
  [[nodiscard]] bool gathered() const {
    return control_->gathered.load(std::memory_order_relaxed) != 0;
  }
  // The futex word.
  [[nodiscard]] std::atomic<std::uint32_t>* wake_word() { return &control_->wake; }

 private:
  // The most entries examined per check of the user's reads, if some hold no Slot.
  static constexpr std::uint32_t kLook = 4'096;
  void lay_out(std::byte* memory, const ChannelGeometry& geometry);
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
  // The places of the ring that hold no Slot, and the number of unread ones.
  std::vector<std::uint64_t> in_reserve_;
  std::uint32_t reserve_count_ = 0;
  ChannelState state_ = ChannelState::kConnecting;
  bool broken_ = false;
};

}  // namespace stp
