// SPDX-License-Identifier: BSD-3-Clause
#include "stp/channel/rings.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"

namespace stp {

NodeChannel::NodeChannel(std::byte* memory, const ChannelGeometry& geometry)
    : slots_(geometry.slots),
      rx_mask_(geometry.rx_capacity() - 1),
      tx_mask_(geometry.tx_capacity() - 1) {
  if (geometry.rx_capacity() > kFew)
    in_reserve_ = std::make_unique<std::uint64_t[]>(geometry.rx_capacity() / 64);
  STP_ASSERT(geometry.slots >= 1 && geometry.slots <= kMaxSlots, "a channel has a Slot");
  STP_ASSERT(geometry.credits >= 1 && geometry.credits <= kMaxCredits, "a channel has a credit");
  STP_ASSERT(reinterpret_cast<std::uintptr_t>(memory) % kCacheLine == 0,
             "a channel begins with a cache line");
  lay_out(memory, geometry);
}

void NodeChannel::lay_out(std::byte* memory, const ChannelGeometry& geometry) {
  control_ = new (memory) ChannelControl{};
  rx_ = reinterpret_cast<ReceivedEntry*>(memory + geometry.rx_at());
  tx_ = reinterpret_cast<SendEntry*>(memory + geometry.tx_at());
  control_->magic = kChannelMagic;
  control_->size = static_cast<std::uint32_t>(geometry.size());
  control_->slots = geometry.slots;
  control_->credits = geometry.credits;
  control_->rx_capacity = geometry.rx_capacity();
  control_->tx_capacity = geometry.tx_capacity();
  control_->rx_at = static_cast<std::uint32_t>(geometry.rx_at());
  control_->tx_at = static_cast<std::uint32_t>(geometry.tx_at());
}

bool NodeChannel::move_to(std::byte* memory, std::uint32_t& copied) {
  const auto& from = *control_;
  STP_ASSERT(rx_head_ <= rx_mask_ + 1 && rx_first_ == 0 && tx_tail_ == 0,
             "nobody has used the channel so far");
  STP_ASSERT(copied <= rx_head_, "only what is there was copied");
  const auto count = std::min(rx_head_ - copied, kCopied);
  work::count("headers that are copied", count);
  std::copy_n(rx_ + copied, count, reinterpret_cast<ReceivedEntry*>(memory + from.rx_at) + copied);
  copied += count;
  if (copied != rx_head_) return false;
  lay_out(memory, {from.slots, from.credits});
  const auto copy = [](const auto& word, auto& to) {
    to.store(word.load(std::memory_order_relaxed), std::memory_order_relaxed);
  };
  copy(from.error, control_->error);
  copy(from.state, control_->state);
  copy(from.cts_repeated, control_->cts_repeated);
  copy(from.path_block, control_->path_block);
  copy(from.steps, control_->steps);
  copy(from.wake, control_->wake);
  control_->rx_head.store(rx_head_, std::memory_order_release);
  return true;
}

std::uint32_t NodeChannel::queued() {
  const auto tail = control_->rx_tail.load(std::memory_order_acquire);
  const auto count = rx_head_ - tail;
  if (count > rx_head_ - seen_tail_) {  // past the end, or backwards
    broken_ = true;
    return rx_mask_ + 1;
  }
  if (reserve_count_ != 0) return pass_reserve(tail);
  seen_tail_ = tail;
  return count;
}

// A user may have read many entries: those beyond kLook count at a later look.
std::uint32_t NodeChannel::pass_reserve(std::uint32_t tail) {
  const auto until = tail - seen_tail_ > kLook ? seen_tail_ + kLook : tail;
  while (reserve_count_ > 0 && seen_tail_ != until) {
    auto& word = reserve_word(seen_tail_);
    const auto bits = std::min(64 - seen_tail_ % 64, until - seen_tail_);  // of this word
    const auto mask = (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1)
                      << seen_tail_ % 64;
    STP_ASSERT(static_cast<std::uint32_t>(std::popcount(word & mask)) <= reserve_count_,
               "no more entries without a Slot are read than were counted");
    reserve_count_ -= static_cast<std::uint32_t>(std::popcount(word & mask));
    word &= ~mask;
    seen_tail_ += bits;
    work::count("headers that a user has read");
  }
  seen_tail_ = until;
  return rx_head_ - until;
}

std::uint32_t NodeChannel::free_slots() {
  const auto used = queued() - reserve_count_;
  return slots_ > used ? slots_ - used : 0;
}

bool NodeChannel::deliver(const ReceivedEntry& entry, Place place) {
  if (place == Place::kSlot ? free_slots() == 0
                            : (queued(), broken_ || reserve_count_ == rx_mask_ + 1 - slots_))
    return false;
  if (place == Place::kReserve) {
    reserve_word(rx_head_) |= reserve_bit(rx_head_);
    ++reserve_count_;
  }
  STP_ASSERT(rx_head_ - seen_tail_ <= rx_mask_, "an entry overwrites none that is unread");
  STP_ASSERT(reserve_count_ <= rx_mask_ + 1 - slots_,
             "entries without a Slot leave the Slots free");
  if (rx_head_ == seen_tail_)
    control_->rx_first.store(rx_first_ = rx_head_, std::memory_order_relaxed);
  write_entry(entry, rx_[(rx_head_ - rx_first_) & rx_mask_]);
  control_->rx_head.store(++rx_head_, std::memory_order_release);
  return true;
}

bool NodeChannel::peek(SendEntry& out) {
  const auto waiting = control_->tx_head.load(std::memory_order_acquire) - tx_tail_;
  if (waiting == 0) return false;
  if (waiting > tx_mask_ + 1) {
    broken_ = true;
    return false;
  }
  // Copies the entry before checking it: a user may still write to the ring.
  read_entry(oldest(*control_), out);
  return true;
}

void NodeChannel::count_refused(bool over_budget) {
  if (over_budget) control_->tx_over_budget.store(++over_budget_, std::memory_order_relaxed);
  control_->tx_refused.store(++refused_, std::memory_order_relaxed);
}

void NodeChannel::refuse_all() {
  const auto waiting = control_->tx_head.load(std::memory_order_acquire) - tx_tail_;
  if (waiting > tx_mask_ + 1) broken_ = true;
  if (waiting == 0 || broken_) return;
  refused_ += waiting;
  control_->tx_refused.store(refused_, std::memory_order_relaxed);
  tx_tail_ += waiting;
  control_->tx_tail.store(tx_tail_, std::memory_order_release);
}

void NodeChannel::count_cts_repeated() {
  control_->cts_repeated.store(++cts_repeated_, std::memory_order_relaxed);
}

void NodeChannel::count_step() {
  control_->steps.store(++steps_, std::memory_order_relaxed);
}

void NodeChannel::set_state(ChannelState state, int error) {
  STP_ASSERT(state_ != ChannelState::kClosed || state == ChannelState::kClosed,
             "a closed channel stays closed");
  STP_ASSERT(state_ != ChannelState::kFailed || state == ChannelState::kFailed,
             "a channel that has failed stays so");
  STP_ASSERT(state != ChannelState::kOpen || state_ == ChannelState::kConnecting,
             "a channel opens once");
  STP_ASSERT((error != 0) == (state == ChannelState::kFailed),
             "a channel has an error exactly if it has failed");
  state_ = state;
  control_->error.store(error, std::memory_order_relaxed);
  control_->state.store(state, std::memory_order_release);
}

bool NodeChannel::needs_wake() {
  // Orders the publication before the read of `sleepers`. The user's begin_sleep() does the
  // reverse, so one of the two sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (control_->sleepers.load(std::memory_order_relaxed) == 0) return false;
  control_->wake.fetch_add(1, std::memory_order_seq_cst);
  return true;
}

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

bool UserChannel::receive(ReceivedEntry& out) {
  auto& control = *control_;
  const auto tail = rx_tail_;
  if (control.rx_head.load(std::memory_order_acquire) == tail) return false;
  const auto place = tail - control.rx_first.load(std::memory_order_relaxed);
  read_entry(rx_[place & rx_mask_], out);
  rx_tail_ = tail + 1;
  control.rx_tail.store(tail + 1, std::memory_order_release);
  return true;
}

bool UserChannel::send(const SendEntry& entry) {
  auto* const place = next();
  if (place == nullptr) return false;
  write_entry(entry, *place);
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

void UserChannel::gather(std::uint32_t user) {
  STP_ASSERT(user != 0, "who gathers a channel has a number");
  control_->gathered.store(user, std::memory_order_relaxed);
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
