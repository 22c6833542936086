// SPDX-License-Identifier: BSD-3-Clause
#include "stp/channel/user_side.h"

#include "stp/base/assert.h"

namespace stp {

UserChannel::UserChannel(std::byte* memory)
    : control_(reinterpret_cast<ChannelControl*>(memory)),
      rx_(reinterpret_cast<ReceivedEntry*>(memory + control_->rx_at)),
      tx_(reinterpret_cast<SendEntry*>(memory + control_->tx_at)),
      rx_mask_(control_->rx_capacity - 1),
      tx_mask_(control_->tx_capacity - 1),
      credits_(control_->credits) {
  STP_ASSERT((control_->rx_capacity & rx_mask_) == 0 && (control_->tx_capacity & tx_mask_) == 0,
             "a ring has a power of two of places");
  STP_ASSERT(credits_ <= control_->tx_capacity, "a user may fill no more than the ring holds");
}

bool UserChannel::readable() const {
  return control_->rx_head.load(std::memory_order_acquire) != rx_tail_;
}

bool UserChannel::receive(ReceivedEntry& out) {
  if (!readable()) return false;
  out = rx_[rx_tail_ & rx_mask_];
  control_->rx_tail.store(++rx_tail_, std::memory_order_release);
  return true;
}

bool UserChannel::writable() const {
  return tx_head_ - control_->tx_tail.load(std::memory_order_acquire) < credits_;
}

bool UserChannel::send(const SendEntry& entry) {
  if (!writable()) return false;
  next() = entry;
  send_next();
  return true;
}

bool UserChannel::done(std::uint32_t index) const {
  return static_cast<std::int32_t>(control_->tx_done.load(std::memory_order_acquire) - index) >= 0;
}

std::uint32_t UserChannel::begin_sleep() {
  control_->sleepers.fetch_add(1, std::memory_order_seq_cst);
  const auto seen = control_->wake.load(std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return seen;
}

void UserChannel::gather() {
  control_->gathered.store(1, std::memory_order_relaxed);
  begin_sleep();
}

// Once per value of the word: those who are woken by this thread wake nobody.
bool UserChannel::passes_on() {
  if (control_->sleepers.load(std::memory_order_seq_cst) <= 1) return false;
  const auto seen = control_->wake.load(std::memory_order_seq_cst);
  return control_->passed_on.exchange(seen, std::memory_order_seq_cst) != seen;
}

void UserChannel::end_sleep() {
  const auto before = control_->sleepers.fetch_sub(1, std::memory_order_relaxed);
  STP_ASSERT(before > 0, "who ends a sleep has begun one");
}

}  // namespace stp
