// SPDX-License-Identifier: BSD-3-Clause
// Records where libst has mapped its memfds in the program's address space. The program may have
// unmapped or moved any of them since, so find() compares with the kernel's list of mappings. Not
// thread-safe: SharedPages owns it and locks.
#pragma once

#include <map>
#include <vector>

#include "libst/client/address_space.h"
#include "libst/client/lent_ranges.h"

namespace stp::client {

// The name of the memfds, and whether such a one is mapped there.
inline constexpr char kRegionName[] = "libst-region";
bool is_region(const MappedArea& area);

class Placements {
 public:
  // The memfd with that inode is now mapped at `pages`, starting at `offset`.
  void add(Span pages, std::uint64_t inode, std::uint64_t offset);
  // Appends to `out` the placements that still exist, cut to what is left of them, and those that
  // were moved, and forgets the others. False: /proc/self/maps cannot be read; nothing is
  // forgotten.
  bool find(std::vector<MappedArea>& out);
  // Calls madvise() for all of them, as they were recorded. Allocates no memory.
  void advise(int advice) const;

 private:
  struct File {
    std::uintptr_t end = 0;
    std::uint64_t inode = 0, offset = 0;
  };
  using Files = std::map<std::uintptr_t, File>;
  // A part of a memfd, by offsets, that is not where it was placed.
  struct Lost {
    std::uint64_t inode = 0, begin = 0, end = 0;
  };
  void clear(Span pages);
  void lose(Span part, std::uintptr_t begin, const File& file);
  void lose_missing(const Files& still);
  void find_moved(const MappedArea& area, Files& still, std::vector<MappedArea>& out) const;

  Files by_begin_;               // none overlap
  std::vector<Lost> lost_;       // others were placed over them; find() looks where they are now
  std::size_t look_at_ = kLook;  // at this many entries add() forgets those that are gone
  static constexpr std::size_t kLook = 1024;
};

}  // namespace stp::client
