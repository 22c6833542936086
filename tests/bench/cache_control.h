// SPDX-License-Identifier: BSD-3-Clause
// A control measurement without a Node: the cost of cache misses for work on many connections in
// turn. Reads as many lines per frame from a working set of the same size, in an order that a
// prefetcher cannot predict.
#pragma once

#include <cstdint>
#include <vector>

#include "stp/channel/layout.h"

namespace stp::bench {

class CacheControl {
 public:
  explicit CacheControl(std::size_t connections)
      : connections_(connections), lines_(connections * kSteps * kLinesOfStep) {}

  // Reads the lines of one connection. The address of each step depends on what the last one read,
  // like Port, connection, regions, one region and its Blocks.
  void touch(std::size_t which) {
    for (std::size_t step = 0; step < kSteps; ++step) {
      std::uint64_t next = 0;
      for (std::size_t i = 0; i < kLinesOfStep; ++i) {
        const auto row = (step * kLinesOfStep + i) * connections_;
        next += lines_[row + (which * kSpread + found_) % connections_].value;
      }
      found_ = next;
    }
  }
  [[nodiscard]] std::uint64_t found() const { return found_; }

 private:
  // A Silent Put of one STU misses the first-level cache 13 times from on_data() on (callgrind
  // --cache-sim=yes counts them), and about 3 times before it: Port, connection, Key.
  static constexpr std::size_t kSteps = 4, kLinesOfStep = 4;
  static constexpr std::size_t kSpread = 40'507;
  struct alignas(kCacheLine) Line {
    std::uint64_t value = 0;
  };
  std::size_t connections_;
  std::vector<Line> lines_;
  std::uint64_t found_ = 0;
};

}  // namespace stp::bench
