// SPDX-License-Identifier: BSD-3-Clause
// Registering memory with stpd replaces pages in place, and fork() does for a moment. Where the
// system cannot hold back who writes to them meanwhile the write is lost. Programs keep their own
// threads away then; the library's own activity is none of theirs to know of, so it keeps out of
// the way by itself: all progress is made under a domain's mutex, and whoever replaces pages holds
// those of all domains. What a thread touches while it only waits lies in pages of its own.
#pragma once

#include <sys/mman.h>

#include <mutex>
#include <new>

namespace stp::managed {

// A domain's own: makes its mutex one of those.
class MappingGateMember {
 public:
  explicit MappingGateMember(std::mutex& domain);
  ~MappingGateMember();
  MappingGateMember(const MappingGateMember&) = delete;
  MappingGateMember& operator=(const MappingGateMember&) = delete;

 private:
  friend class MappingGateShut;
  static void shut_at_forks();
  std::mutex& domain_;
  MappingGateMember* next_ = nullptr;
};

// While it lives no domain moves. Its maker holds no domain's mutex.
class MappingGateShut {
 public:
  MappingGateShut() { lock(); }
  ~MappingGateShut() { unlock(); }
  MappingGateShut(const MappingGateShut&) = delete;
  MappingGateShut& operator=(const MappingGateShut&) = delete;

 private:
  friend class MappingGateMember;
  static void lock();
  static void unlock();
};

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
