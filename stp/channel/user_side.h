// SPDX-License-Identifier: BSD-3-Clause
// The user's end of a channel, for libst. One thread at a time may receive and one may send.
#pragma once

#include "stp/channel/layout.h"

namespace stp {

class UserChannel {
 public:
  UserChannel() = default;
  explicit UserChannel(std::byte* memory);  // laid out by a NodeChannel before

  [[nodiscard]] explicit operator bool() const { return control_ != nullptr; }

  bool receive(ReceivedEntry& out);  // false: the Schedule Header Queue is empty
  [[nodiscard]] bool readable() const;
  // The same, for threads other than the one that receives.
  [[nodiscard]] bool waiting() const {
    return control_->rx_head.load(std::memory_order_acquire) !=
           control_->rx_tail.load(std::memory_order_relaxed);
  }
  bool send(const SendEntry& entry);  // false: the transmit queue is full
  [[nodiscard]] bool writable() const;
  // The same without a copy, while writable(): fill in next(), then call send_next().
  [[nodiscard]] SendEntry& next() { return tx_[tx_head_ & tx_mask_]; }
  // Not asserted: the other process may write, at this moment, what writable() reads.
  void send_next() { control_->tx_head.store(++tx_head_, std::memory_order_release); }

  // For flushing: the index after the last request, and whether all requests before `index` are
  // done.
  [[nodiscard]] std::uint32_t sent() const { return tx_head_; }
  // The index after the last header that was received.
  [[nodiscard]] std::uint32_t received() const { return rx_tail_; }
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
  // instead of waking a sleeper here.
  void gather();
  // Ends gather(): the user no longer watches this channel.
  void leave() { control_->gathered.store(0, std::memory_order_relaxed); }

 private:
  ChannelControl* control_ = nullptr;
  ReceivedEntry* rx_ = nullptr;
  SendEntry* tx_ = nullptr;
  std::uint32_t rx_mask_ = 0, tx_mask_ = 0, credits_ = 0;
  std::uint32_t rx_tail_ = 0, tx_head_ = 0;
};

}  // namespace stp
