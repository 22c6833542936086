// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/handle_table.h"

#include <pthread.h>

#include "stp/base/assert.h"

namespace stp::client {
namespace {

constexpr std::uint32_t tag_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}
// Returns the tag for the next use of an entry.
constexpr std::uint32_t next_tag(std::uint32_t tag, Kind kind, unsigned kind_bits) {
  return ((tag >> kind_bits) + 1) << kind_bits | static_cast<std::uint32_t>(kind);
}

}  // namespace

constinit std::atomic<HandleTable*> HandleTable::instance_{nullptr};

HandleTable& HandleTable::make() {
  // Never destroyed: other threads may still be inside a call when the process exits.
  static auto* const table = new HandleTable;
  instance_.store(table, std::memory_order_release);
  return *table;
}

HandleTable::HandleTable() {
  ::pthread_atfork(nullptr, nullptr,
                   [] { instance().inherited_.store(true, std::memory_order_relaxed); });
}

Handle HandleTable::add(Kind kind, std::shared_ptr<void> object) {
  STP_ASSERT(object != nullptr, "a handle is given to an object");
  const Lock guard(mutex_);
  if (free_.empty()) {
    if (size_ == kChunk * kChunks) return 0;
    // As one object: an array of its own has its length in front, so a program that looks for leaks
    // would find no pointer to its beginning.
    auto& slots = *new std::array<Slot, kChunk>;
    for (std::uint32_t i = 0; i < kChunk; ++i) free_.push_back(slots[i].index = size_ + i);
    chunks_[size_ / kChunk].store(slots.data(), std::memory_order_release);
    size_ += kChunk;
  }
  const auto index = free_.front();
  free_.pop_front();
  auto& slot = *slot_at(index);
  STP_ASSERT(index < size_ && slot.object == nullptr, "a free place has no object");
  STP_ASSERT((slot.word.load(std::memory_order_relaxed) & (kLive | kPins)) == 0,
             "nobody holds a free place");
  slot.object = std::move(object);
  const auto tag = next_tag(tag_of(slot.word.load(std::memory_order_relaxed)), kind, kKindBits);
  slot.word.store(std::uint64_t{tag} << 32 | kLive, std::memory_order_release);
  return Handle{tag} << 32 | Handle{index} << kMarkBits | kMark;
}

// Nobody can pin a retired slot, so the thread that drops the last pin is the only one that uses
// it.
void HandleTable::recycle(Slot& slot) {
  STP_ASSERT(slot.object != nullptr, "a handle that is retired had an object");
  const auto object = std::move(slot.object);  // its destructor runs without the lock
  const Lock guard(mutex_);
  free_.push_back(slot.index);
}

}  // namespace stp::client
