// SPDX-License-Identifier: BSD-3-Clause
// Memory that a client lends to the daemon for a region: pieces of memfds of its own, mapped side
// by side, and the pieces of them that the region consists of.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "libst/service/messages.h"
#include "libst/service/unique_fd.h"
#include "stp/types.h"

namespace stp::service {

class RegionMemory {
 public:
  // Maps what the kMap `request` says, `most` bytes at most. 0; -EINVAL (segments that make no
  // sense, memory that its owner could take away), -EDQUOT (too much at once) or what mmap says.
  static int map(const Request& request, std::span<const UniqueFd> fds, std::uint64_t most,
                 std::shared_ptr<RegionMemory>& out);
  // Makes the next `bytes` of it be there: a gigabyte of pages that nobody has touched takes a
  // second. 0: every page is, and no fault is left for the thread that polls; -EAGAIN: some are
  // missing yet; or why they cannot be had.
  int populate(std::uint64_t bytes);
  ~RegionMemory();
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;

  [[nodiscard]] const std::vector<MutableBytes>& pieces() const { return pieces_; }

 private:
  RegionMemory(MutableBytes mapped, bool read_only) : mapped_(mapped), read_only_(read_only) {}
  MutableBytes mapped_;  // whole pages
  std::vector<MutableBytes> pieces_;
  const bool read_only_;
  std::size_t populated_ = 0;
};

}  // namespace stp::service
