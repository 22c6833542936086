// SPDX-License-Identifier: BSD-3-Clause
// The handles of the C API. A handle is a number cast to a pointer: index into a table, use count
// of that entry, kind of object. It is never dereferenced: comparing numbers is enough to reject
// NULL, a closed handle, one of another kind, or a stray pointer.
//
// The table is fixed storage that only grows. Lookups take no lock. An object lives until its
// handle is retired and the last call that uses it has returned.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"
#include "stp/base/mutex.h"

namespace stp::client {

enum class Kind : std::uint32_t {
  kEndpoint = 1,
  kConnection,
  kRegion,
  // of the managed layer
  kDomain,
  kMemory,
  kAccess,
  kQueue,
  kPool,
  kListener,
  kManagedConnection,
};

using Handle = std::uintptr_t;
static_assert(sizeof(Handle) == 8, "a handle needs 64 bits");

class HandleTable {
  // Each is in one cache line.
  struct alignas(32) Slot {
    // tag (32 bits) | live (1) | pins (31). The tag is the entry's use count and the kind.
    std::atomic<std::uint64_t> word{0};
    std::shared_ptr<void> object;
    std::uint32_t index = 0;
  };

 public:
  static HandleTable& instance() {
    auto* const made = instance_.load(std::memory_order_acquire);
    return made != nullptr ? *made : make();
  }

  // Holds an object during a call. Empty: no such object.
  class Pin {
   public:
    Pin() = default;
    explicit Pin(Slot* slot) : slot_(slot) {}
    Pin(Pin&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
    Pin& operator=(Pin&&) = delete;
    ~Pin() {
      if (slot_ != nullptr) unpin(*slot_);
    }
    [[nodiscard]] explicit operator bool() const { return slot_ != nullptr; }
    [[nodiscard]] const std::shared_ptr<void>& object() const { return slot_->object; }

   private:
    Slot* slot_ = nullptr;
  };

  // 0: the table is full.
  Handle add(Kind kind, std::shared_ptr<void> object);
  Pin pin(Handle handle, Kind kind) { return take<false>(handle, kind); }
  // As pin(), and invalidates the handle. If several threads call it, one succeeds.
  Pin retire(Handle handle, Kind kind) { return take<true>(handle, kind); }

  // Brings what pin() reads into the caches.
  void fetch_ahead(Handle handle) const {
    fetch_line(slot_at(static_cast<std::uint32_t>(handle) >> kMarkBits));
  }

  // In a child of fork() all handles are invalid: the threads and the link stay with the parent.
  [[nodiscard]] bool inherited() const { return inherited_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kChunk = 1024, kChunks = 1024;
  static constexpr std::uint64_t kLive = std::uint64_t{1} << 31;
  static constexpr std::uint64_t kPins = kLive - 1;
  // The lowest bits of every handle. No aligned pointer ends in them.
  static constexpr Handle kMark = 5, kMarkBits = 3;
  // The lowest bits of a tag are the kind.
  static constexpr unsigned kKindBits = 4;

  HandleTable();
  static HandleTable& make();
  template <bool kRetire>
  Pin take(Handle handle, Kind kind);
  static void unpin(Slot& slot) {
    const auto before = slot.word.fetch_sub(1, std::memory_order_acq_rel);
    STP_ASSERT((before & kPins) != 0, "who lets go of an object holds it");
    if ((before & (kPins | kLive)) == 1) instance().recycle(slot);
  }
  void recycle(Slot& slot);
  [[nodiscard]] Slot* slot_at(std::uint32_t index) const {
    const auto chunk = index / kChunk;
    if (chunk >= kChunks) return nullptr;
    auto* const slots = chunks_[chunk].load(std::memory_order_acquire);
    return slots == nullptr ? nullptr : &slots[index % kChunk];
  }

  static constinit std::atomic<HandleTable*> instance_;
  std::array<std::atomic<Slot*>, kChunks> chunks_{};
  std::atomic<bool> inherited_{false};
  Mutex mutex_;
  std::uint32_t size_ STP_GUARDED_BY(mutex_) = 0;
  std::deque<std::uint32_t> free_ STP_GUARDED_BY(mutex_);
};

// In this header because it is part of each call.
template <bool kRetire>
[[gnu::always_inline]] inline HandleTable::Pin HandleTable::take(Handle handle, Kind kind) {
  constexpr auto kMarks = Handle{(1U << kKindBits) - 1} << 32 | ((Handle{1} << kMarkBits) - 1);
  if ((handle & kMarks) != (static_cast<Handle>(kind) << 32 | kMark) || inherited()) return {};
  auto* const slot = slot_at(static_cast<std::uint32_t>(handle) >> kMarkBits);
  if (slot == nullptr) return {};
  const auto live = handle >> 32 << 1 | 1;  // the tag, and that it is live
  auto word = slot->word.load(std::memory_order_relaxed);
  for (;;) {
    if (word / kLive != live) return {};
    const auto taken = (kRetire ? word & ~kLive : word) + 1;
    if (slot->word.compare_exchange_weak(word, taken, std::memory_order_acquire,
                                         std::memory_order_relaxed))
      return Pin(slot);
  }
}

// A pinned object of a known type.
template <typename T>
class Ref {
 public:
  explicit Ref(HandleTable::Pin pin) : pin_(std::move(pin)) {}
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(pin_); }
  T* operator->() const { return static_cast<T*>(pin_.object().get()); }
  [[nodiscard]] T* get() const { return pin_ ? operator->() : nullptr; }
  T& operator*() const { return *operator->(); }
  [[nodiscard]] std::shared_ptr<T> share() const {
    return std::static_pointer_cast<T>(pin_.object());
  }

 private:
  HandleTable::Pin pin_;
};

template <typename T>
[[gnu::always_inline]] inline Ref<T> find(Handle handle) {
  return Ref<T>(HandleTable::instance().pin(handle, T::kKind));
}
// Looks up a handle that the user passed.
template <typename T>
[[gnu::always_inline]] inline Ref<T> find(const void* handle) {
  return find<T>(reinterpret_cast<Handle>(handle));
}
template <typename T>
Ref<T> retire(Handle handle) {
  return Ref<T>(HandleTable::instance().retire(handle, T::kKind));
}

}  // namespace stp::client
