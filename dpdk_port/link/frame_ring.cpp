// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/frame_ring.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "stp/base/assert.h"

namespace stp::port {

FrameRing::FrameRing(std::size_t places, std::size_t room)
    : buffers_(places, whole_cache_lines(sizeof(Head) + room)),
      count_(places),
      room_(room),
      free_(places) {
  STP_ASSERT(std::has_single_bit(places), "a ring has a power of two of places");
}

// Either this side sees the room, or the receiver sees that the sender waits: each side stores
// before it loads.
bool FrameRing::has_room(std::size_t frames) {
  waits_ = false;
  if (free_ >= frames || (free_ = free_places()) >= frames) return true;
  stalled_.store(true, std::memory_order_seq_cst);
  free_ = free_places();
  waits_ = free_ < frames;
  if (!waits_) stalled_.store(false, std::memory_order_seq_cst);
  return !waits_;
}

bool FrameRing::push(Bytes head, Bytes rest, bool local) {
  // A NIC's buffers may hold longer frames than the MTU allows.
  if (head.size() + rest.size() > room_) return false;
  if (free_ == 0 && (free_ = free_places()) == 0) return false;
  std::byte* const at = place(pushed_);
  const Head about{static_cast<std::uint32_t>(head.size() + rest.size()), local};
  std::memcpy(at, &about, sizeof about);
  std::byte* const to = std::copy(head.begin(), head.end(), at + sizeof about);
  std::copy(rest.begin(), rest.end(), to);
  ++pushed_;
  --free_;
  return true;
}

bool FrameRing::publish() {
  if (sent_.load(std::memory_order_relaxed) == pushed_) return false;
  sent_.store(pushed_, std::memory_order_seq_cst);
  return true;
}

bool FrameRing::may_go_on() const {
  return waits_ && free_places() >= count_ / 2;
}

FrameRing::Entry FrameRing::at(std::size_t index) const {
  STP_ASSERT(index < waiting(), "a frame that is read waits");
  const std::byte* const at = place(received_.load(std::memory_order_relaxed) + index);
  Head about;
  std::memcpy(&about, at, sizeof about);
  return {Bytes(at + sizeof about, about.length), about.local};
}

bool FrameRing::release(std::size_t frames) {
  STP_ASSERT(frames <= waiting(), "what is released has waited");
  received_.store(received_.load(std::memory_order_relaxed) + frames, std::memory_order_seq_cst);
  if (!stalled_.load(std::memory_order_seq_cst) || waiting() > count_ / 2) return false;
  stalled_.store(false, std::memory_order_seq_cst);
  return true;
}

}  // namespace stp::port
