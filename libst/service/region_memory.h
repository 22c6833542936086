// SPDX-License-Identifier: BSD-3-Clause
// Memory that a client lends to the daemon for a region: pieces of memfds of its own, mapped side
// by side, and the pieces of them that the region consists of.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "libst/os/unique_fd.h"
#include "libst/service/budget.h"
#include "libst/service/memory_guard.h"
#include "libst/service/messages.h"
#include "stp/types.h"

namespace stp::service {

class RegionMemory {
 public:
  // The bytes that the kMap `request` would map, in segments that make sense: 0, -EINVAL, or
  // -EDQUOT where they are more than `most`.
  static int measure(const Request& request, std::size_t fd_count, std::uint64_t most,
                     std::uint64_t& bytes);
  // Maps what was measured. 0; -EINVAL (memory that its owner could take away) or what mmap says.
  // `bytes` and `mappings` are given back when it is unmapped. `torn`: set where its owner has
  // taken away pages of it that were used.
  static int map(const Request& request, std::span<const UniqueFd> fds, Reservation bytes,
                 Reservation mappings, std::shared_ptr<Torn> torn,
                 std::shared_ptr<RegionMemory>& out);
  // Looks up the pages of the next `bytes` of it, so that no fault is left for the thread that
  // polls. 0: that was all; -EAGAIN: there is more; -EFAULT: its owner has not made them all, and
  // it is not for this process to do so; or why they cannot be had.
  int populate(std::uint64_t bytes);
  ~RegionMemory();
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;

  [[nodiscard]] const std::vector<MutableBytes>& pieces() const { return pieces_; }
  [[nodiscard]] std::size_t size() const { return mapped_.size(); }

 private:
  RegionMemory(MutableBytes mapped, bool read_only) : mapped_(mapped), read_only_(read_only) {}
  Reservation bytes_, mappings_;
  Guarded guarded_;
  MutableBytes mapped_;  // whole pages
  std::vector<MutableBytes> pieces_;
  const bool read_only_;
  std::size_t populated_ = 0;
};

}  // namespace stp::service
