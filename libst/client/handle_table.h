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
  struct Slot {
    // tag (32 bits) | live (1) | pins (31). The tag is the entry's use count and the kind.
    std::atomic<std::uint64_t> word{0};
    std::shared_ptr<void> object;
  };

 public:
  static HandleTable& instance();

  // Holds an object during a call. Empty: no such object.
  class Pin {
   public:
    Pin() = default;
    Pin(HandleTable* table, std::uint32_t index, Slot* slot)
        : table_(table), index_(index), slot_(slot) {}
    Pin(Pin&& other) noexcept
        : table_(other.table_), index_(other.index_), slot_(std::exchange(other.slot_, nullptr)) {}
    Pin& operator=(Pin&&) = delete;
    ~Pin() {
      if (slot_ != nullptr) table_->unpin(index_, *slot_);
    }
    [[nodiscard]] explicit operator bool() const { return slot_ != nullptr; }
    [[nodiscard]] const std::shared_ptr<void>& object() const { return slot_->object; }

   private:
    HandleTable* table_ = nullptr;
    std::uint32_t index_ = 0;
    Slot* slot_ = nullptr;
  };

  // 0: the table is full.
  Handle add(Kind kind, std::shared_ptr<void> object);
  Pin pin(Handle handle, Kind kind) { return take(handle, kind, false); }
  // As pin(), and invalidates the handle. If several threads call it, one succeeds.
  Pin retire(Handle handle, Kind kind) { return take(handle, kind, true); }

  // In a child of fork() all handles are invalid: the threads and the link stay with the parent.
  [[nodiscard]] bool inherited() const { return inherited_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kChunk = 1024, kChunks = 1024;

  HandleTable();
  Pin take(Handle handle, Kind kind, bool retire);
  void unpin(std::uint32_t index, Slot& slot);
  void recycle(std::uint32_t index, Slot& slot);
  Slot* slot_at(std::uint32_t index) const;

  std::array<std::atomic<Slot*>, kChunks> chunks_{};
  std::atomic<bool> inherited_{false};
  Mutex mutex_;
  std::uint32_t size_ STP_GUARDED_BY(mutex_) = 0;
  std::deque<std::uint32_t> free_ STP_GUARDED_BY(mutex_);
};

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
Ref<T> find(Handle handle) {
  return Ref<T>(HandleTable::instance().pin(handle, T::kKind));
}
// Looks up a handle that the user passed.
template <typename T>
Ref<T> find(const void* handle) {
  return find<T>(reinterpret_cast<Handle>(handle));
}
template <typename T>
Ref<T> retire(Handle handle) {
  return Ref<T>(HandleTable::instance().retire(handle, T::kKind));
}

}  // namespace stp::client
