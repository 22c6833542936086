// SPDX-License-Identifier: BSD-3-Clause
// The memory of a trace's ring.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace stp::trace {

// Pages that are there once they are used: the writer's thread makes them so, and the polling
// thread does not wait for it.
class RingMemory {
 public:
  explicit RingMemory(std::size_t size)
      : bytes_(static_cast<std::byte*>(
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        size_(bytes_ == MAP_FAILED ? 0 : size) {}
  ~RingMemory() {
    if (size_ != 0) ::munmap(bytes_, size_);
  }
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  void populate() {
#ifdef MADV_POPULATE_WRITE
    ::madvise(bytes_, size_, MADV_POPULATE_WRITE);
#endif
  }
  [[nodiscard]] std::byte* data() {
    return bytes_;
  }
  [[nodiscard]] std::size_t size() const {
    return size_;
  }

 private:
  std::byte* const bytes_;
  const std::size_t size_;
};

}  // namespace stp::trace
