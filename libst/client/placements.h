// SPDX-License-Identifier: BSD-3-Clause
// Where memfds of ours were put into the program's address space. The program may have unmapped any
// of them since, so what is there is seen by the system's list of mappings.
#pragma once

#include <map>
#include <vector>

#include "libst/client/address_space.h"
#include "libst/client/lent_ranges.h"

namespace stp::client {

class Placements {
 public:
  // The memfd with that inode is mapped at `pages` now, from `offset` on.
  void add(Span pages, std::uint64_t inode, std::uint64_t offset);
  // Those that are still there, cut where they were cut; others are forgotten. False: the system
  // does not tell, and none is forgotten.
  bool find(std::vector<MappedArea>& out);
  // madvise() for all of them, wherever they were put. Needs no memory.
  void advise(int advice) const;

 private:
  struct File {
    std::uintptr_t end = 0;
    std::uint64_t inode = 0, offset = 0;
  };
  void clear(Span pages);

  std::map<std::uintptr_t, File> by_begin_;  // none overlap
  std::size_t look_at_ = kLook;              // so many of them are looked at for what has gone
  static constexpr std::size_t kLook = 1024;
};

}  // namespace stp::client
