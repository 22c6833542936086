// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/ring.h"

#include <algorithm>
#include <bit>

#include "stp/base/assert.h"

namespace stp::port::memif {

void Ring::clear() {
  std::memset(at_, 0, ring_bytes(static_cast<unsigned>(std::countr_zero(size_))));
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(at_ + kCookieAt), kCookie, __ATOMIC_RELEASE);
}

// ---- Sender

unsigned Sender::room() {
  // The client owns the buffers of its ring; to the server they are offered, up to the head.
  const unsigned room = buffers_.are_own()
                            ? ring_.size() - static_cast<std::uint16_t>(next_ - ring_.tail())
                            : static_cast<std::uint16_t>(ring_.head() - next_);
  if (room <= ring_.size()) return room;
  break_off();
  return 0;
}

bool Sender::put(std::span<const Bytes> parts) {
  std::uint16_t used = 0;
  for (std::size_t done = 0;;) {
    if (used == room_) {
      if (broken_ || (room_ = room()) <= used) return false;
    }
    const auto number = static_cast<std::uint16_t>(next_ + used);
    const auto place = static_cast<std::uint16_t>(number & (ring_.size() - 1U));
    Descriptor descriptor = buffers_.are_own() ? buffers_.offered(place) : ring_.descriptor(number);
    const std::span<std::byte> buffer = buffers_.find(place, descriptor);
    if (buffer.size() < kLeastBuffer) return break_off();
    std::size_t filled = 0;
    while (!parts.empty() && filled < buffer.size()) {
      const std::size_t length = std::min(parts[0].size() - done, buffer.size() - filled);
      if (length != 0) std::memcpy(buffer.data() + filled, parts[0].data() + done, length);
      filled += length;
      done += length;
      if (done < parts[0].size()) break;
      parts = parts.subspan(1);
      done = 0;
    }
    descriptor.length = static_cast<std::uint32_t>(filled);
    descriptor.flags = parts.empty() ? 0 : Descriptor::kMore;
    ring_.set_descriptor(number, descriptor);
    ++used;
    if (parts.empty()) break;
  }
  STP_ASSERT(used <= room_, "a frame takes no more places than are free");
  next_ = static_cast<std::uint16_t>(next_ + used);
  room_ -= used;
  return true;
}

void Sender::publish() {
  if (published_ == next_) return;
  published_ = next_;
  if (buffers_.are_own())
    ring_.set_head(next_);
  else
    ring_.set_tail(next_);
}

// ---- Receiver

void Receiver::begin() {
  for (unsigned place = 0; place < ring_.size(); ++place) {
    const auto number = static_cast<std::uint16_t>(place);
    ring_.set_descriptor(number, buffers_.offered(number));
  }
  ring_.set_head(ring_.size());
}

unsigned Receiver::arrived() {
  if (broken_) return 0;
  // No further than the places that were released to it.
  const std::uint16_t end = buffers_.are_own() ? ring_.tail() : ring_.head();
  const unsigned filled = static_cast<std::uint16_t>(end - released_);
  const unsigned taken = static_cast<std::uint16_t>(next_ - released_);
  if (filled <= ring_.size() && filled >= taken) return filled - taken;
  break_off();
  return 0;
}

Receiver::Took Receiver::take(std::span<std::byte> to, std::size_t& length) {
  std::uint16_t used = 0;
  bool fits = true;
  length = 0;
  for (;;) {
    // A frame is published whole.
    if (used == left_ && (left_ = arrived()) <= used)
      return used == 0 ? Took::kNothing : break_off();
    const auto number = static_cast<std::uint16_t>(next_ + used);
    const auto place = static_cast<std::uint16_t>(number & (ring_.size() - 1U));
    const Descriptor descriptor = ring_.descriptor(number);
    const std::span<std::byte> buffer = buffers_.find(place, descriptor);
    const bool more = (descriptor.flags & Descriptor::kMore) != 0;
    if (descriptor.length > buffer.size() || (more && descriptor.length == 0) ||
        used == kMostPieces)
      return break_off();
    fits = fits && descriptor.length <= to.size() - length;
    if (fits && descriptor.length != 0) {
      std::memcpy(to.data() + length, buffer.data(), descriptor.length);
      length += descriptor.length;
    }
    ++used;
    if (!more) break;
    // DPDK's client sets this flag, and forgets it there.
    Descriptor cleared = descriptor;
    cleared.flags = 0;
    ring_.set_descriptor(number, cleared);
  }
  next_ = static_cast<std::uint16_t>(next_ + used);
  left_ -= used;
  return fits ? Took::kFrame : Took::kTooLong;
}

void Receiver::release() {
  if (released_ == next_) return;
  if (!buffers_.are_own()) {
    ring_.set_tail(released_ = next_);
    return;
  }
  for (; released_ != next_; ++released_) {
    const auto place = static_cast<std::uint16_t>(released_ & (ring_.size() - 1U));
    ring_.set_descriptor(released_, buffers_.offered(place));
  }
  ring_.set_head(static_cast<std::uint16_t>(next_ + ring_.size()));
}

}  // namespace stp::port::memif
