// SPDX-License-Identifier: BSD-3-Clause
// What this process has used: CPU time and, if the machine counts them, instructions.
#pragma once

#include <cstdint>
#include <optional>

namespace stp::perf {

struct Usage {
  double cpu_seconds = 0;
  std::optional<std::uint64_t> instructions;
};
Usage operator-(const Usage& later, const Usage& earlier);

// Counts the instructions of the constructing thread and of threads that it starts later: construct
// it first.
class UsageMeter {
 public:
  UsageMeter();
  ~UsageMeter();
  UsageMeter(const UsageMeter&) = delete;
  UsageMeter& operator=(const UsageMeter&) = delete;

  [[nodiscard]] Usage now() const;

 private:
  int counter_;  // -1: the machine has no counter, or this user may not use it
};

}  // namespace stp::perf
