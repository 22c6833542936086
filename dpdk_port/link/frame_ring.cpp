// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/frame_ring.h"

#include <algorithm>
#include <bit>

#include "stp/base/assert.h"

namespace stp::port {

FrameRing::FrameRing(std::size_t places, std::size_t room)
    : buffers_(places, room), places_(places), free_(places) {
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
  if (head.size() + rest.size() > buffers_.room()) return false;
  if (free_ == 0 && (free_ = free_places()) == 0) return false;
  const auto at = pushed_ & (places_.size() - 1);
  std::byte* const to = std::copy(head.begin(), head.end(), buffers_.at(at));
  std::copy(rest.begin(), rest.end(), to);
  places_[at] = {static_cast<std::uint32_t>(head.size() + rest.size()), local};
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
  return waits_ && free_places() >= places_.size() / 2;
}

FrameRing::Entry FrameRing::at(std::size_t index) const {
  STP_ASSERT(index < waiting(), "a frame that is read waits");
  const auto at = (received_.load(std::memory_order_relaxed) + index) & (places_.size() - 1);
  return {Bytes(buffers_.at(at), places_[at].length), places_[at].local};
}

bool FrameRing::release(std::size_t frames) {
  STP_ASSERT(frames <= waiting(), "what is released has waited");
  received_.store(received_.load(std::memory_order_relaxed) + frames, std::memory_order_seq_cst);
  if (!stalled_.load(std::memory_order_seq_cst) || waiting() > places_.size() / 2) return false;
  stalled_.store(false, std::memory_order_seq_cst);
  return true;
}

}  // namespace stp::port
