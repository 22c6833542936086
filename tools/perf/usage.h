// SPDX-License-Identifier: BSD-3-Clause
// What this process has used up: CPU time, and instructions where the machine counts them.
#pragma once

#include <cstdint>
#include <optional>

namespace stp::perf {

struct Usage {
  double cpu_seconds = 0;
  std::optional<std::uint64_t> instructions;
};
Usage operator-(const Usage& later, const Usage& earlier);

// Threads are counted that start after it was made: make it first.
class UsageMeter {
 public:
  UsageMeter();
  ~UsageMeter();
  UsageMeter(const UsageMeter&) = delete;
  UsageMeter& operator=(const UsageMeter&) = delete;

  [[nodiscard]] Usage now() const;

 private:
  int counter_;  // -1: this machine, or its administrator, lets nobody count
};

}  // namespace stp::perf
