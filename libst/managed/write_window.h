// SPDX-License-Identifier: BSD-3-Clause
// The Writes under way on a connection. The peer's Node remembers the newest ones. While the oldest
// unconfirmed Write is among them, a lost confirmation can always be repeated.
#pragma once

#include <cstdint>
#include <set>

#include "stp/base/assert.h"

namespace stp::managed {

// protocol: 9.32
class WriteWindow {
 public:
  static constexpr std::uint64_t kMost = 64;

  [[nodiscard]] bool may_begin() const {
    return open_.empty() || last_ + 1 - *open_.begin() < kMost;
  }
  // Whether a Write is under way.
  [[nodiscard]] bool any() const { return !open_.empty(); }
  // Returns the number of the new Write, counted from 1.
  std::uint64_t begin() {
    STP_ASSERT(may_begin(), "a Write begins within the window");
    open_.insert(open_.end(), ++last_);
    return last_;
  }
  // The Write was confirmed or given up.
  void complete(std::uint64_t write) {
    const auto erased = open_.erase(write);
    STP_ASSERT(erased == 1, "a Write completes once");
  }

 private:
  std::set<std::uint64_t> open_;
  std::uint64_t last_ = 0;
};

}  // namespace stp::managed
