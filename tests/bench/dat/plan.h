// SPDX-License-Identifier: BSD-3-Clause
// The parameters and results of a measurement.
#pragma once

#include <cstddef>

namespace stp::bench {

inline constexpr std::size_t kMessageSize = 64, kWriteSize = std::size_t{1} << 20;
inline constexpr std::size_t kPage = 4096;
inline constexpr int kWindow = 8;  // outstanding writes

struct Plan {
  int rounds = 100'000, writes = 2'000;
  bool sleep = false;  // in the API's own wait, instead of polling
};

struct Figures {
  double round_trip_us = 0, bytes_per_second = 0;
};

}  // namespace stp::bench
