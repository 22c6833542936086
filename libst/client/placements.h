// SPDX-License-Identifier: BSD-3-Clause
// Records where libst has mapped its memfds in the program's address space. The program may have
// unmapped any of them since, so find() compares with the kernel's list of mappings. Not
// thread-safe: SharedPages owns it and locks.
#pragma once

#include <map>
#include <vector>

#include "libst/client/address_space.h"
#include "libst/client/lent_ranges.h"

namespace stp::client {

class Placements {
 public:
  // The memfd with that inode is now mapped at `pages`, starting at `offset`.
  void add(Span pages, std::uint64_t inode, std::uint64_t offset);
  // Appends to `out` the placements that still exist, cut to what is left of them, and forgets the
  // others. False: /proc/self/maps cannot be read; nothing is forgotten.
  bool find(std::vector<MappedArea>& out);
  // Calls madvise() for all of them, as they were recorded. Allocates no memory.
  void advise(int advice) const;

 private:
  struct File {
    std::uintptr_t end = 0;
    std::uint64_t inode = 0, offset = 0;
  };
  void clear(Span pages);

  std::map<std::uintptr_t, File> by_begin_;  // none overlap
  std::size_t look_at_ = kLook;  // at this many entries add() forgets those that are gone
  static constexpr std::size_t kLook = 1024;
};

}  // namespace stp::client
