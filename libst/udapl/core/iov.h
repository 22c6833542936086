// SPDX-License-Identifier: BSD-3-Clause
// A checked segment list as one piece of registered memory: the segment's own memory if there is
// only one, else staging.
#pragma once

#include <span>
#include <vector>

#include "libst/udapl/core/lmr.h"
#include "libst/udapl/core/staging.h"

namespace stp::udapl {

inline constexpr int kMaxIov = 64;

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
