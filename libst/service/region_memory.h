// SPDX-License-Identifier: BSD-3-Clause
// Memory that a client lends to the daemon for a region: ranges of the client's memfds (segments),
// mapped side by side, and the pieces of them that make up the region. The daemon seals the memfds
// (file_mapping.h) and looks once whether all pages are there: from then on none can go.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "libst/os/unique_fd.h"
#include "libst/service/budget.h"
#include "libst/service/file_mapping.h"
#include "libst/service/memory_guard.h"
#include "libst/service/messages.h"
#include "stp/types.h"

namespace stp::service {

class RegionMemory {
 public:
  // Checks the segments of a kMap `request` and computes how many bytes it would map. Returns 0,
  // -EINVAL, or -EDQUOT if they are more than `most`.
  static int measure(const Request& request, std::size_t fd_count, std::uint64_t most,
                     std::uint64_t& bytes);
  // Maps a request that measure() has checked, with the same `most`. Returns 0; -EINVAL: the owner
  // could shrink the memory or keep it from being sealed, or the file is so long that a look for
  // missing pages would take too long; -EPERM: it was sealed earlier and can be mapped no more;
  // -EFAULT: the owner has not allocated all pages; or another negative errno. Waits for whoever
  // works on the files. The destructor unmaps and returns `bytes` and `mappings` to
  // their budgets. `torn` is set if the owner takes away pages in use.
  static int map(const Request& request, std::span<const UniqueFd> fds, std::uint64_t most,
                 Reservation bytes, Reservation mappings, std::shared_ptr<Torn> torn,
                 std::shared_ptr<RegionMemory>& out);
  // Maps in the pages of the next `bytes`, so that the polling thread does not fault on them.
  // Returns 0 when all are mapped in; -EAGAIN: call again; or another negative errno.
  int populate(std::uint64_t bytes);
  // Call last, with the request that was mapped: the kernel does not move the pages any more. As
  // far as the system permits it (page_pins.h). Returns 0, or -EDQUOT: `payer` may not have the
  // files that it takes.
  int pin_pages(const Account& payer, const Request& request);
  ~RegionMemory();
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;

  [[nodiscard]] const std::vector<MutableBytes>& pieces() const { return pieces_; }
  [[nodiscard]] std::size_t size() const { return mapped_.size(); }

 private:
  int place(std::byte* at, const Segment& segment, int fd, std::uint64_t most);
  RegionMemory(MutableBytes mapped, bool read_only) : mapped_(mapped), read_only_(read_only) {}
  Reservation bytes_, mappings_;
  Guarded guarded_;
  std::vector<std::shared_ptr<FileMapping>> files_;  // by the number of the descriptor
  MutableBytes mapped_;                              // whole pages
  std::vector<MutableBytes> pieces_;
  PagePins pins_;
  const bool read_only_;
  std::size_t populated_ = 0;
};

}  // namespace stp::service
