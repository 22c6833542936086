// SPDX-License-Identifier: BSD-3-Clause
// The result of a test, and its output.
#pragma once

#include <optional>
#include <string>

#include "tools/perf/histogram.h"
#include "tools/perf/usage.h"

namespace stp::perf {

struct Result {
  std::string what;  // "latency", "bandwidth", ...
  std::string operation;
  std::string link;
  std::uint64_t size = 0;
  std::uint32_t window = 1, connections = 1;
  bool bidirectional = false;

  double seconds = 0;  // duration of the measurement
  std::uint64_t operations = 0;
  std::uint64_t peer_operations = 0;   // bidirectional: those of the server
  const Histogram* latency = nullptr;  // nullptr: a test of throughput
  std::optional<Usage> here, peer;
};

[[nodiscard]] std::string text_of(const Result& result);  // lines for people
[[nodiscard]] std::string json_of(const Result& result);  // one line

// "1048576" or "1M".
std::string text_of_size(std::uint64_t size);

}  // namespace stp::perf
