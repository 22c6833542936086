// SPDX-License-Identifier: BSD-3-Clause
// Segment lists, and the registered memory that stands in for those of several segments.
#pragma once

#include <stp/managed.h>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "libst/udapl/core/memory.h"

namespace stp::udapl {

// Registered memory for messages of several segments.
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

inline constexpr int kMaxIov = 64;

// A checked segment list as one piece of registered memory: the segment's own memory if there is
// only one, else staging.
class Iov {
 public:
  // Checks against `pz` and `privilege` (kLocalRead or kLocalWrite).
  Result assign(Ia& ia, const Pz& pz, std::span<const LmrTriplet> segments, unsigned privilege);

  // Copies the segments into staging, before sending.
  void gather() const;
  // Copies the first `length` bytes from staging into the segments, in order. False: one of their
  // LMRs has been freed.
  [[nodiscard]] bool scatter(std::size_t length) const;

  [[nodiscard]] stm_memory_t memory() const { return memory_; }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t length() const { return length_; }

 private:
  struct Segment {
    std::byte* data;
    std::size_t length;
    std::shared_ptr<const Object> lmr;
  };
  stm_memory_t memory_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t length_ = 0;
  std::vector<Segment> segments_;  // more than one, or none
  Staging staging_;
};

}  // namespace stp::udapl
