// SPDX-License-Identifier: BSD-3-Clause
// Tracks which bytes of the program are lent to stpd, and how often each. Pages filled by lent
// bytes are excluded from a fork (MADV_DONTFORK). Pages that also hold other bytes are set aside
// during a fork (SetAside). Not thread-safe: SharedPages owns it and locks.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "stp/types.h"

namespace stp::client {

// Addresses in [begin, end).
struct Span {
  std::uintptr_t begin = 0, end = 0;
  [[nodiscard]] bool empty() const { return begin >= end; }
  [[nodiscard]] std::size_t size() const { return end - begin; }
  friend bool operator==(const Span&, const Span&) = default;
};

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

}  // namespace stp::client
