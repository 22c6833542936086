// SPDX-License-Identifier: BSD-3-Clause
// Registered memory for messages of several segments.
#pragma once

#include <stp/managed.h>

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace stp::udapl {

class StagingPool;

// One buffer, returned to its pool on destruction.
class Staging {
 public:
  Staging() = default;
  Staging(StagingPool& pool, std::byte* data, std::size_t size, stm_memory_t memory)
      : pool_(&pool), data_(data), size_(size), memory_(memory) {}
  Staging(Staging&& other) noexcept { *this = std::move(other); }
  Staging& operator=(Staging&& other) noexcept;
  ~Staging() { reset(); }
  void reset();

  [[nodiscard]] explicit operator bool() const { return data_ != nullptr; }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] stm_memory_t memory() const { return memory_; }

 private:
  friend class StagingPool;
  StagingPool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  stm_memory_t memory_ = nullptr;
};

// Buffers with sizes of powers of two. Returned buffers are reused.
class StagingPool {
 public:
  void set_domain(stm_domain_t domain) { domain_ = domain; }
  ~StagingPool();
  // Returns 0, or an error if there is none.
  int take(std::size_t size, Staging& out);

 private:
  friend class Staging;
  struct Free {
    std::byte* data;
    stm_memory_t memory;
  };
  stm_domain_t domain_ = nullptr;
  std::multimap<std::size_t, Free> free_;
};

}  // namespace stp::udapl
