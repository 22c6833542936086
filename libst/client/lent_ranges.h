// SPDX-License-Identifier: BSD-3-Clause
// Which bytes of the program are lent to stpd, and where libst has mapped its memfds.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "libst/client/address_space.h"
#include "stp/types.h"

namespace stp::client {

// Addresses in [begin, end).
struct Span {
  std::uintptr_t begin = 0, end = 0;
  [[nodiscard]] bool empty() const { return begin >= end; }
  [[nodiscard]] std::size_t size() const { return end - begin; }
  friend bool operator==(const Span&, const Span&) = default;
};

// Tracks which bytes of the program are lent to stpd, and how often each. Pages filled by lent
// bytes are excluded from a fork (MADV_DONTFORK). Pages that also hold other bytes are set aside
// during a fork (SetAside). Not thread-safe: SharedPages owns it and locks.
class LentRanges {
 public:
  void add(Bytes bytes);
  void remove(Bytes bytes);
  // The same for bytes that the program has unmapped since: leaves what is mapped there now alone.
  void forget(Bytes bytes);
  // Keeps realloc() from growing the pages in place, which still belong to a memfd.
  static void keep_from_growing(Bytes bytes);

  // A part of `area`, in whole pages: filled by lent bytes, holding some, or none.
  enum class Kind { kFilled, kMixed, kFree };
  struct Part {
    Span span;
    Kind kind = Kind::kFree;
    friend bool operator==(const Part&, const Part&) = default;
  };
  // Excludes the filled pages from forks once more, as add() has done. Allocates no memory.
  void leave_out() const;
  // Splits `area` into parts, in order.
  [[nodiscard]] std::vector<Part> parts(Span area) const;

 private:
  // Pages filled by lent ranges, and pages touched by them, each with a count.
  std::map<std::uintptr_t, int> filled_, touched_;  // changes of the count, by address
};

// The name of the memfds, and whether such a one is mapped there.
inline constexpr char kRegionName[] = "libst-region";
bool is_region(const MappedArea& area);

// Records where libst has mapped its memfds in the program's address space. The program may have
// unmapped or moved any of them since, so find() compares with the kernel's list of mappings. Not
// thread-safe: SharedPages owns it and locks.
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
