// SPDX-License-Identifier: BSD-3-Clause
// Tracks the allocated Bufx values of a domain. The same range serves for sending and receiving, on
// every endpoint of the domain.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "stp/base/assert.h"

namespace stp::managed {

class BufxSpace {
 public:
  static constexpr std::uint32_t kEntries = std::uint32_t{1} << 22;

  // Allocates the lowest free range of `count` values and returns its first one. Lowest, because
  // tables reach up to their highest entry.
  std::optional<std::uint32_t> take(std::uint32_t count) {
    STP_ASSERT(count > 0, "memory takes a Bufx at least");
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      const auto [first, length] = *at;
      if (length < count) continue;
      free_.erase(at);
      if (length > count) free_[first + count] = length - count;
      return first;
    }
    return std::nullopt;
  }

  void give_back(std::uint32_t first, std::uint32_t count) {
    STP_ASSERT(count > 0 && std::uint64_t{first} + count <= kEntries,
               "what is given back was taken");
    const auto next = free_.lower_bound(first);
    STP_ASSERT(next == free_.end() || first + count <= next->first, "what is given back was taken");
    if (next != free_.end() && next->first == first + count) {
      count += next->second;
      free_.erase(next);
    }
    const auto after = free_.lower_bound(first);
    if (after != free_.begin()) {
      const auto before = std::prev(after);
      STP_ASSERT(before->first + before->second <= first, "what is given back was taken");
      if (before->first + before->second == first) {
        before->second += count;
        return;
      }
    }
    free_[first] = count;
  }

 private:
  std::map<std::uint32_t, std::uint32_t> free_{{0, kEntries}};  // first -> count; neighbours merged
};

}  // namespace stp::managed
