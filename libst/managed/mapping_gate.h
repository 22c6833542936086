// SPDX-License-Identifier: BSD-3-Clause
// Registering memory with stpd replaces pages in place, and what another thread writes to them
// meanwhile is lost. Programs keep their own threads away; the library's own activity is none of
// theirs to know of, so it keeps out of the way by itself: progress holds the gate open, and
// replacing pages shuts it. What a thread touches while it only waits lies in pages of its own.
#pragma once

#include <sys/mman.h>

#include <new>
#include <shared_mutex>

namespace stp::managed {

// Static storage: on no page that a program could register.
std::shared_mutex& mapping_gate();

// For std::allocate_shared: whole pages for each object.
template <typename T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <typename U>
  explicit PageAllocator(const PageAllocator<U>&) {}
  T* allocate(std::size_t count) {
    auto* const memory = ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) { ::munmap(memory, count * sizeof(T)); }
  friend bool operator==(const PageAllocator&, const PageAllocator&) { return true; }
};

}  // namespace stp::managed
