// SPDX-License-Identifier: BSD-3-Clause
// The only source of random numbers in a simulation: the same seed gives the same numbers on every
// machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stp/types.h"

namespace stp::sim {

using Rate = std::uint32_t;  // per million
inline constexpr Rate kAlways = 1'000'000;

class Dice : public Random {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint32_t next() override { return static_cast<std::uint32_t>(next64() >> 32); }
  std::uint64_t next64() {  // splitmix64
    auto z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  // Both bounds included.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + next64() % (high - low + 1);
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next64() % count); }
  bool chance(Rate rate) { return rate != 0 && next64() % kAlways < rate; }
  // All magnitudes are equally likely, so small numbers are as frequent as large ones.
  std::uint64_t magnitude(std::uint64_t low, std::uint64_t high) {
    unsigned doublings = 0;
    while (low << doublings < high) ++doublings;
    const auto top = low << between(0, doublings);
    const auto drawn = between(low, top);
    return drawn < high ? drawn : high;
  }
  // Returns an independent source, so that more numbers drawn in one part of a run change nothing
  // in another.
  Dice fork() { return Dice(next64()); }

 private:
  std::uint64_t state_;
};

}  // namespace stp::sim
