// SPDX-License-Identifier: BSD-3-Clause
// Messages without a round trip. Each side opens a ring of slots to its peer (docs/protocol.md,
// 9.31). A short message goes into the next slot, with its number in the order of all messages, if
// the peer has taken the previous message from that slot. Messages in the other direction carry how
// many messages a side has taken, and so do separate notices.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "libst/managed/staging.h"
#include "stp/base/assert.h"

namespace stp::managed {

// The header of a message in its slot.
struct EagerHead {
  std::uint32_t message = 0, length = 0, tag = 0, taken = 0;
};
inline constexpr std::size_t kEagerHead = 16;
inline constexpr std::size_t kEagerMost = kEagerSlot - kEagerHead;
// The key of the ring, which is opened implicitly. Keys of the program's regions are higher.
inline constexpr std::uint32_t kEagerKey = 1;

void encode(const EagerHead& head, std::byte* slot);
EagerHead decode_eager(const std::byte* slot);

// The sending side: uses the slots in turn.
class EagerOut {
 public:
  [[nodiscard]] bool has_slot() const {
    return open_ && sent_ - taken_ < kEagerSlots && (in_flight_ >> (sent_ % kEagerSlots) & 1) == 0;
  }
  // At least half of the slots are free.
  [[nodiscard]] bool has_plenty() const {
    return static_cast<unsigned>(std::popcount(in_flight_)) < kEagerSlots / 2 &&
           sent_ - taken_ < kEagerSlots / 2;
  }
  void open() { open_ = true; }
  void close() { open_ = false; }
  [[nodiscard]] bool is_open() const { return open_; }
  std::uint32_t use_slot() {
    STP_ASSERT(has_slot(), "a slot is used that is free");
    const auto slot = sent_++ % kEagerSlots;
    in_flight_ |= 1U << slot;
    return slot;
  }
  // The put from that slot is complete: its bytes may be reused.
  void delivered(std::uint32_t slot) {
    STP_ASSERT(slot < kEagerSlots && (in_flight_ >> slot & 1) != 0,
               "a put from a slot completes once");
    in_flight_ &= ~(1U << slot);
  }
  // The peer reports how many messages it has taken in total. Reports may overtake each other.
  void taken(std::uint32_t count) {
    if (static_cast<std::int32_t>(count - taken_) > 0 && sent_ - count <= kEagerSlots)
      taken_ = count;
  }

 private:
  bool open_ = false;
  std::uint32_t sent_ = 0, taken_ = 0;
  std::uint32_t in_flight_ = 0;  // bit per slot
};
static_assert(kEagerSlots <= 32);

// The receiving side: messages that have arrived and wait to be matched.
class EagerIn {
 public:
  struct Arrived {
    std::uint32_t slot = 0;
    EagerHead head;
  };
  // `length` bytes have arrived at `offset`. Returns false if they are not a valid message.
  bool arrived(std::uint64_t offset, std::uint64_t length, const Staging& staging, EagerHead& out);
  [[nodiscard]] const Arrived* find(std::uint32_t message) const {
    for (auto left = waiting_; left != 0; left &= left - 1) {
      const auto& arrived = slots_[static_cast<std::size_t>(std::countr_zero(left))];
      if (arrived.head.message == message) return &arrived;
    }
    return nullptr;
  }
  void take(const Arrived& arrived) {
    STP_ASSERT((waiting_ >> arrived.slot & 1) != 0, "a message that is taken has arrived");
    waiting_ &= ~(1U << arrived.slot);
    ++taken_;
  }
  [[nodiscard]] std::uint32_t taken() const { return taken_; }
  // Returns the count to report to the peer now.
  std::uint32_t tell() { return told_ = taken_; }
  // Enough is unreported to send a notice.
  [[nodiscard]] bool should_tell() const { return taken_ - told_ >= kEagerSlots / 2; }
  [[nodiscard]] bool has_untold() const { return taken_ != told_; }

 private:
  std::array<Arrived, kEagerSlots> slots_;
  std::uint32_t waiting_ = 0;  // bit per slot
  std::uint32_t taken_ = 0, told_ = 0;
};

}  // namespace stp::managed
