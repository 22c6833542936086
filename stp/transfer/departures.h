// SPDX-License-Identifier: BSD-3-Clause
// The times when the Node took the last few requests: the clock of a repeat starts then.
#pragma once

#include <array>
#include <cstdint>

#include "stp/base/assert.h"
#include "stp/types.h"

namespace stp {

// protocol: 10.20
class Departures {
 public:
  // At `when` the Node was seen to have taken request `number` and all before it.
  void add(std::uint64_t number, Time when) {
    const auto& newest = seen_[(next_ + seen_.size() - 1) % seen_.size()];
    STP_ASSERT(number > newest.number && when >= newest.when, "requests leave in their order");
    seen_[next_++ % seen_.size()] = {number, when};
  }
  // When request `number` was seen to be taken; 0: too long ago.
  [[nodiscard]] Time of(std::uint64_t number) const {
    Time when = 0;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const auto& seen = seen_[(next_ + seen_.size() - 1 - i) % seen_.size()];
      if (seen.number < number) return when;
      when = seen.when;
    }
    return 0;
  }
  // When request `number` was last known to wait for the Node; 0: too long ago.
  [[nodiscard]] Time before(std::uint64_t number) const {
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const auto& seen = seen_[(next_ + seen_.size() - 1 - i) % seen_.size()];
      if (seen.number < number) return seen.when;
    }
    return 0;
  }

 private:
  struct Seen {
    std::uint64_t number = 0;
    Time when = 0;
  };
  std::array<Seen, 16> seen_{};
  std::size_t next_ = 0;
};

}  // namespace stp
