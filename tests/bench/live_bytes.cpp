// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/live_bytes.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> live{0};

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  live.fetch_add(malloc_usable_size(memory), std::memory_order_relaxed);
  return memory;
}

void* aligned(std::size_t size, std::align_val_t alignment) {
  auto const to = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(to, (size + to - 1) / to * to));
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  live.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

namespace stp::test {

std::size_t live_bytes() {
  return live.load(std::memory_order_relaxed);
}

}  // namespace stp::test

// The array forms of the standard library call these.
void* operator new(std::size_t size) {
  return counted(std::malloc(size));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return aligned(size, alignment);
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
