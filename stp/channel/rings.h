// SPDX-License-Identifier: BSD-3-Clause
// The two ends of a channel's rings: what one of them publishes is what the other one reads.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>

#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"
#include "stp/channel/layout.h"
#include "stp/types.h"

namespace stp {

// The Node's end. It keeps copies of the indices it owns and checks those it does not own, so
// whatever a user writes into the rings can hurt only that user.
class NodeChannel {
 public:
  NodeChannel() = default;
  // Lays the channel out in zeroed memory of geometry.size() bytes, aligned to a cache line.
  NodeChannel(std::byte* memory, const ChannelGeometry& geometry);

  // Goes on in `memory`, zeroed and as large, that the user sees from now on; it has not seen the
  // present one. Copies what is in there: what a user has read or posted does not exist yet. That
  // may be megabytes, so a call copies up to kCopied headers. `copied`: how many have been so far,
  // at first 0. False: some are left, and the channel is where it was.
  static constexpr std::uint32_t kCopied = 1'024;
  bool move_to(std::byte* memory, std::uint32_t& copied);

  [[nodiscard]] std::uint32_t slots() const { return slots_; }

  // The number of free Slots now: the value of R_Slots.
  [[nodiscard]] std::uint32_t free_slots();
  // The same without a look at the user's line, if the user had read all at the last look: so who
  // gets nothing to read is spared that line.
  [[nodiscard]] std::uint32_t known_free_slots() {
    return rx_head_ == seen_tail_ ? slots_ : free_slots();
  }

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
    std::uint32_t special;  // 0: it has no payload, is not limited, and may not be marked
  };
  // Look::special of a request that only may be marked.
  static constexpr auto kMayBeMarked =
      std::bit_cast<std::uint32_t>(std::array<std::uint8_t, 4>{0, 0, 1, 0});
  [[nodiscard]] bool look(Look& out) const {
    const auto& control = *control_;
    const auto waiting = control.tx_head.load(std::memory_order_acquire) - tx_tail_;
    if (waiting == 0 || waiting > tx_mask_ + 1) return false;  // peek() distinguishes them
    const auto& entry = oldest(control);
    out = {entry.header, entry.length, entry.bufx, entry.offset, 0};
    std::memcpy(&out.special,
                reinterpret_cast<const std::byte*>(&entry) + offsetof(SendEntry, payload_length),
                sizeof out.special);
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
  void complete(std::uint32_t index) {
    STP_ASSERT(static_cast<std::int32_t>(tx_tail_ - index) >= 0,
               "only requests that were taken are done with");
    control_->tx_done.store(index, std::memory_order_release);
  }
  void count_refused(bool over_budget = false);
  // Drops all requests now in the transmit queue, as refused.
  void refuse_all();
  void count_cts_repeated();
  // Another step of a Block that is granted in parts has come.
  void count_step();
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

  // Brings what a request or a header needs into the caches: of this object, and then of the
  // channel, for a header that finds it empty.
  void fetch_ahead() const {
    fetch_line(&control_);
    fetch_line(&few_in_reserve_);
  }
  void fetch_rings_ahead() const {
    fetch_lines(&control_->rx_head, control_ + 1);
    fetch_line(rx_);
  }

 private:
  // The most entries examined per check of the user's reads, if some hold no Slot.
  static constexpr std::uint32_t kLook = 4'096;
  void lay_out(std::byte* memory, const ChannelGeometry& geometry);
  // The oldest request. The user can name any place as the first one, and spoils its own requests.
  [[nodiscard]] const SendEntry& oldest(const ChannelControl& control) const {
    return tx_[(tx_tail_ - control.tx_first.load(std::memory_order_relaxed)) & tx_mask_];
  }
  [[gnu::noinline]] std::uint32_t pass_reserve(std::uint32_t tail);
  std::uint32_t queued();  // unread entries of the Schedule Header Queue
  std::uint64_t& reserve_word(std::uint32_t index) {
    const auto at = (index & rx_mask_) / 64;
    return rx_mask_ < kFew ? few_in_reserve_[at] : in_reserve_[at];
  }
  static std::uint64_t reserve_bit(std::uint32_t index) { return std::uint64_t{1} << index % 64; }

  static constexpr std::uint32_t kFew = 256;  // places of a ring

  std::uint32_t refused_ = 0, over_budget_ = 0, cts_repeated_ = 0, steps_ = 0;
  // The places of the ring that hold no Slot: here if there are more than kFew of them.
  std::unique_ptr<std::uint64_t[]> in_reserve_;

  // What each request and each header need: a cache line, and a word of the next one.
  ChannelControl* control_ = nullptr;
  ReceivedEntry* rx_ = nullptr;
  SendEntry* tx_ = nullptr;
  std::uint32_t slots_ = 0;
  std::uint32_t rx_mask_ = 0, tx_mask_ = 0;
  std::uint32_t rx_head_ = 0, rx_first_ = 0, tx_tail_ = 0;
  std::uint32_t seen_tail_ = 0;      // how far the user had read at the last look
  std::uint32_t reserve_count_ = 0;  // unread entries that hold no Slot
  ChannelState state_ = ChannelState::kConnecting;
  bool broken_ = false;
  std::array<std::uint64_t, kFew / 64> few_in_reserve_{};
};

// The user's end, for libst. One thread at a time may receive and one may send.
class UserChannel {
 public:
  UserChannel() = default;
  explicit UserChannel(std::byte* memory);  // laid out by a NodeChannel before

  // Brings what the next calls read into the caches.
  void fetch_ahead() const {
    fetch_lines(&control_->rx_head, control_ + 1);
    fetch_line(rx_);
    fetch_line(tx_);
  }
  bool receive(ReceivedEntry& out);  // false: the Schedule Header Queue is empty
  [[nodiscard]] bool readable() const {
    return control_->rx_head.load(std::memory_order_acquire) != rx_tail_;
  }
  // The same, for threads other than the one that receives.
  [[nodiscard]] bool waiting() const {
    return control_->rx_head.load(std::memory_order_acquire) !=
           control_->rx_tail.load(std::memory_order_relaxed);
  }
  bool send(const SendEntry& entry);  // false: the transmit queue is full
  [[nodiscard]] bool writable() const { return tx_head_ - taken() < credits_; }
  // The same without a copy: fill in the place of the next request, then call send_next(). nullptr:
  // the queue is full. If the Node has taken all requests, the next one stands in the first place.
  [[nodiscard]] SendEntry* next() {
    auto& control = *control_;
    const auto head = tx_head_;
    const auto waiting = head - control.tx_tail.load(std::memory_order_acquire);
    if (waiting >= credits_) return nullptr;
    if (waiting == 0) control.tx_first.store(tx_first_ = head, std::memory_order_relaxed);
    return &tx_[(head - tx_first_) & tx_mask_];
  }
  // Not asserted: the other process may write, at this moment, what next() reads.
  void send_next() { control_->tx_head.store(++tx_head_, std::memory_order_release); }
  // The same for several, which the Node sees together: the place behind `drafts` that are filled
  // in; then send_drafts(). Who drops them sends none.
  [[nodiscard]] SendEntry* draft(std::uint32_t drafts) {
    if (drafts == 0) return next();
    const auto index = tx_head_ + drafts;
    if (index - control_->tx_tail.load(std::memory_order_acquire) >= credits_) return nullptr;
    return &tx_[(index - tx_first_) & tx_mask_];
  }
  [[nodiscard]] const SendEntry& drafted(std::uint32_t number) const {
    return tx_[(tx_head_ + number - tx_first_) & tx_mask_];
  }
  void send_drafts(std::uint32_t count) {
    control_->tx_head.store(tx_head_ += count, std::memory_order_release);
  }

  // For flushing: the index after the last request, and whether all requests before `index` are
  // done.
  [[nodiscard]] std::uint32_t sent() const { return tx_head_; }
  // How many places of a ring were used since it was last empty.
  [[nodiscard]] std::uint32_t places_sent() const { return tx_head_ - tx_first_; }
  [[nodiscard]] std::uint32_t places_received() const {
    return rx_tail_ - control_->rx_first.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool done(std::uint32_t index) const;
  // The number of requests that the Node has taken over.
  [[nodiscard]] std::uint32_t taken() const {
    return control_->tx_tail.load(std::memory_order_acquire);
  }

  [[nodiscard]] ChannelState state() const {
    return control_->state.load(std::memory_order_acquire);
  }
  [[nodiscard]] int error() const { return control_->error.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t refused() const {
    return control_->tx_refused.load(std::memory_order_relaxed);
  }
  // Those refused because the budget of the program has no memory.
  [[nodiscard]] std::uint32_t over_budget() const {
    return control_->tx_over_budget.load(std::memory_order_relaxed);
  }

  // The number of CTS that the Node repeated on this connection because STUs were lost.
  [[nodiscard]] std::uint32_t cts_repeated() const {
    return control_->cts_repeated.load(std::memory_order_relaxed);
  }
  // How often enough for progress has come of Blocks that are not complete yet.
  // protocol: 10.17
  [[nodiscard]] std::uint32_t steps() const {
    return control_->steps.load(std::memory_order_relaxed);
  }
  // Exponent of the Block that suits the path from the peer. 0: any.
  [[nodiscard]] unsigned path_block() const {
    return control_->path_block.load(std::memory_order_relaxed);
  }

  // To sleep: seen = begin_sleep(); check again for the awaited event; wait on wake_word() while it
  // equals `seen` (futex); end_sleep().
  std::uint32_t begin_sleep();
  void end_sleep();
  // Call before end_sleep() if the sleep ended because somebody woke this thread. The Node's side
  // wakes one sleeper. True: this is the one, and it has to wake the others on wake_word().
  [[nodiscard]] bool passes_on();
  [[nodiscard]] std::atomic<std::uint32_t>* wake_word() { return &control_->wake; }
  // For a user of many channels that sleeps on one word: from now on the Node notifies that user
  // instead of waking a sleeper here. `user`: tells it from other users of that word; not 0.
  void gather(std::uint32_t user = kSomebody);
  static constexpr std::uint32_t kSomebody = 1;
  // Ends gather(): the user no longer watches this channel.
  void leave() { control_->gathered.store(0, std::memory_order_relaxed); }

 private:
  ChannelControl* control_ = nullptr;
  ReceivedEntry* rx_ = nullptr;
  SendEntry* tx_ = nullptr;
  std::uint32_t rx_mask_ = 0, tx_mask_ = 0, credits_ = 0;
  std::uint32_t rx_tail_ = 0, tx_head_ = 0, tx_first_ = 0;
};

}  // namespace stp
