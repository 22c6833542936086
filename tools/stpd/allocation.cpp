// SPDX-License-Identifier: BSD-3-Clause
// operator new of stpd: where the system refuses memory, what is no request gets some of the
// reserve. Sanitizers have their own.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "stp/base/scarce_memory.h"
#include "tools/stpd/memory_reserve.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STP_SANITIZED
#endif

namespace stp::stpd {

#ifdef STP_SANITIZED

void keep_memory_in_reserve() {}

#else

namespace {

std::atomic<MemoryReserve*> reserve{nullptr};

void* take_from_reserve(std::size_t size, std::size_t alignment) {
  auto* const kept = reserve.load(std::memory_order_acquire);
  auto* const made = kept == nullptr || Refusable::here() ? nullptr : kept->take(size, alignment);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

void release(void* made) noexcept {
  auto* const kept = reserve.load(std::memory_order_relaxed);
  if (kept != nullptr && kept->has(made))
    kept->give_back(made);
  else
    std::free(made);
}

}  // namespace

// Never destroyed: threads may allocate until the process ends.
void keep_memory_in_reserve() {
  static auto* const kept = new MemoryReserve;
  reserve.store(kept, std::memory_order_release);
}

#endif

}  // namespace stp::stpd

#ifndef STP_SANITIZED

void* operator new(std::size_t size) {
  auto* const made = std::malloc(size == 0 ? 1 : size);
  return made != nullptr ? made
                         : stp::stpd::take_from_reserve(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  auto* const made = std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
  return made != nullptr ? made : stp::stpd::take_from_reserve(size, unit);
}
void operator delete(void* made) noexcept {
  stp::stpd::release(made);
}
void operator delete(void* made, std::size_t) noexcept {
  stp::stpd::release(made);
}
void operator delete(void* made, std::align_val_t) noexcept {
  stp::stpd::release(made);
}
void operator delete(void* made, std::size_t, std::align_val_t) noexcept {
  stp::stpd::release(made);
}

#endif
