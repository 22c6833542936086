// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/handle_table.h"

#include <pthread.h>

#include "stp/base/assert.h"

namespace stp::client {
namespace {

constexpr std::uint64_t kLive = std::uint64_t{1} << 31;
constexpr std::uint64_t kPins = kLive - 1;

// The lowest bits of every handle. No aligned pointer ends in them.
constexpr Handle kMark = 5, kMarkBits = 3;

// The lowest bits of a tag are the kind.
constexpr unsigned kKindBits = 4;
constexpr std::uint32_t kKindMask = (1U << kKindBits) - 1;

constexpr std::uint32_t tag_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}
constexpr std::uint32_t kind_of(std::uint32_t tag) {
  return tag & kKindMask;
}
// Returns the tag for the next use of an entry.
constexpr std::uint32_t next_tag(std::uint32_t tag, Kind kind) {
  return ((tag >> kKindBits) + 1) << kKindBits | static_cast<std::uint32_t>(kind);
}

}  // namespace

HandleTable& HandleTable::instance() {
  // Never destroyed: other threads may still be inside a call when the process exits.
  static auto* const table = new HandleTable;
  return *table;
}

HandleTable::HandleTable() {
  ::pthread_atfork(nullptr, nullptr,
                   [] { instance().inherited_.store(true, std::memory_order_relaxed); });
}

HandleTable::Slot* HandleTable::slot_at(std::uint32_t index) const {
  const auto chunk = index / kChunk;
  if (chunk >= kChunks) return nullptr;
  auto* const slots = chunks_[chunk].load(std::memory_order_acquire);
  return slots == nullptr ? nullptr : &slots[index % kChunk];
}

Handle HandleTable::add(Kind kind, std::shared_ptr<void> object) {
  STP_ASSERT(object != nullptr, "a handle is given to an object");
  const Lock guard(mutex_);
  if (free_.empty()) {
    if (size_ == kChunk * kChunks) return 0;
    for (std::uint32_t i = 0; i < kChunk; ++i) free_.push_back(size_ + i);
    chunks_[size_ / kChunk].store(new Slot[kChunk], std::memory_order_release);
    size_ += kChunk;
  }
  const auto index = free_.front();
  free_.pop_front();
  auto& slot = *slot_at(index);
  STP_ASSERT(index < size_ && slot.object == nullptr, "a free place has no object");
  STP_ASSERT((slot.word.load(std::memory_order_relaxed) & (kLive | kPins)) == 0,
             "nobody holds a free place");
  slot.object = std::move(object);
  const auto tag = next_tag(tag_of(slot.word.load(std::memory_order_relaxed)), kind);
  slot.word.store(std::uint64_t{tag} << 32 | kLive, std::memory_order_release);
  return Handle{tag} << 32 | Handle{index} << kMarkBits | kMark;
}

HandleTable::Pin HandleTable::take(Handle handle, Kind kind, bool retire) {
  const auto tag = tag_of(handle);
  if (inherited() || (handle & ((Handle{1} << kMarkBits) - 1)) != kMark ||
      kind_of(tag) != static_cast<std::uint32_t>(kind))
    return {};
  const auto index = static_cast<std::uint32_t>(handle) >> kMarkBits;
  auto* const slot = slot_at(index);
  if (slot == nullptr) return {};
  auto word = slot->word.load(std::memory_order_relaxed);
  for (;;) {
    if (tag_of(word) != tag || (word & kLive) == 0) return {};
    const auto taken = (retire ? word & ~kLive : word) + 1;
    if (slot->word.compare_exchange_weak(word, taken, std::memory_order_acquire,
                                         std::memory_order_relaxed))
      return {this, index, slot};
  }
}

void HandleTable::unpin(std::uint32_t index, Slot& slot) {
  const auto before = slot.word.fetch_sub(1, std::memory_order_acq_rel);
  STP_ASSERT((before & kPins) != 0, "who lets go of an object holds it");
  if ((before & kPins) == 1 && (before & kLive) == 0) recycle(index, slot);
}

// Nobody can pin a retired slot, so the thread that drops the last pin is the only one that uses
// it.
void HandleTable::recycle(std::uint32_t index, Slot& slot) {
  STP_ASSERT(slot.object != nullptr, "a handle that is retired had an object");
  const auto object = std::move(slot.object);  // its destructor runs without the lock
  const Lock guard(mutex_);
  free_.push_back(index);
}

}  // namespace stp::client
