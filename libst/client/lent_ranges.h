// SPDX-License-Identifier: BSD-3-Clause
// Which of the program's bytes are lent to stpd at the moment, each as often as it was lent. Pages
// that they fill are left out of a fork (MADV_DONTFORK); pages that hold anything else, too, are
// set aside during one (SetAside).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "stp/types.h"

namespace stp::client {

// Addresses from `begin` up to `end`.
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

  // A part of `area`, which is whole pages: filled by lent bytes, holding some, or none.
  enum class Kind { kFilled, kMixed, kFree };
  struct Part {
    Span span;
    Kind kind = Kind::kFree;
    friend bool operator==(const Part&, const Part&) = default;
  };
  // Leaves the filled pages out of forks, as add() did. Needs no memory.
  void leave_out() const;
  // All of `area`, in order.
  [[nodiscard]] std::vector<Part> parts(Span area) const;

 private:
  // The pages that one lending fills, and those it touches, each with how often.
  std::map<std::uintptr_t, int> filled_, touched_;  // changes of the count, at addresses
};

}  // namespace stp::client
