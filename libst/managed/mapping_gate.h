// SPDX-License-Identifier: BSD-3-Clause
// Registering memory with stpd replaces pages in place; fork() also does so for a moment. If the
// system cannot hold back writers meanwhile, their writes are lost. A program keeps its own threads
// away from that memory, but it cannot know of the library's threads. So the library stays away
// itself: all progress happens under a domain's mutex, and a thread that replaces pages locks the
// mutexes of all domains. What a thread touches while it only waits is on separate pages.
#pragma once

#include <sys/mman.h>

#include <mutex>
#include <new>

namespace stp::managed {

// Member of a domain: registers its mutex here.
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

// While it exists, no domain makes progress. The caller must hold no domain's mutex.
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

// For std::allocate_shared: gives each object whole pages of its own.
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
