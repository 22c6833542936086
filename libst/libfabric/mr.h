// SPDX-License-Identifier: BSD-3-Clause
// A memory region. If peers may access it, its key is that of a managed API region, addressed by
// virtual address.
#pragma once

#include <rdma/fi_domain.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "libst/include/stp/managed.h"

namespace stp::fi {

class Cntr;
class Domain;

class Mr : public fid_mr {
 public:
  static int open(Domain& domain, const void* buffer, std::size_t length, std::uint64_t access,
                  std::uint64_t flags, void* context, fid_mr*& out);

  [[nodiscard]] stm_memory_t memory() const { return memory_; }
  [[nodiscard]] bool covers(const void* ptr, std::size_t length) const {
    const auto offset =
        reinterpret_cast<std::uintptr_t>(ptr) - reinterpret_cast<std::uintptr_t>(buffer_);
    return memory_ != nullptr && offset <= length_ && length <= length_ - offset;
  }
  // Counts accesses that peers tell of, and that they may make.
  int bind_cntr(fid_t other, std::uint64_t flags);
  void count_access(bool reads) const;
  int close();

 private:
  Mr(Domain& domain, void* buffer, std::size_t length, std::uint64_t access, void* context);
  int bind();

  Domain& domain_;
  void* const buffer_;
  const std::size_t length_;
  const std::uint64_t access_;
  stm_memory_t memory_ = nullptr;
  stm_region_t region_ = nullptr;
  std::array<Cntr*, 2> counters_{};  // of writes and of reads
};

}  // namespace stp::fi
