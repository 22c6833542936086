// SPDX-License-Identifier: BSD-3-Clause
// Memory that a client lends to the daemon for a region: pieces of memfds of its own, mapped side
// by side so that the Node sees one run of bytes.
#pragma once

#include <memory>
#include <span>

#include "libst/service/messages.h"
#include "libst/service/unique_fd.h"
#include "stp/types.h"

namespace stp::service {

class RegionMemory {
 public:
  // Maps what the kMap `request` says. Every page is there afterwards: no fault is left for the
  // thread that polls. 0; -EINVAL (segments that make no sense, memory that its owner could take
  // away), -EDQUOT (too much at once) or what mmap says.
  static int map(const Request& request, std::span<const UniqueFd> fds,
                 std::shared_ptr<RegionMemory>& out);
  ~RegionMemory();
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;

  [[nodiscard]] MutableBytes bytes() const { return region_; }

 private:
  explicit RegionMemory(MutableBytes mapped) : mapped_(mapped) {}
  MutableBytes mapped_;  // whole pages
  MutableBytes region_;
};

}  // namespace stp::service
