// SPDX-License-Identifier: BSD-3-Clause
// Collects durations in memory of fixed size. Percentiles are within half a percent.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

namespace stp::perf {

class Histogram {
 public:
  using Time = std::chrono::duration<double, std::micro>;

  Histogram();
  ~Histogram();
  Histogram(const Histogram&) = delete;
  Histogram& operator=(const Histogram&) = delete;

  void add(std::chrono::nanoseconds time);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] Time min() const { return min_; }
  [[nodiscard]] Time max() const { return max_; }
  [[nodiscard]] Time mean() const;
  // Returns the duration that `percent` of them do not exceed; 0 if there are none.
  [[nodiscard]] Time percentile(double percent) const;

 private:
  struct Bins;
  std::unique_ptr<Bins> bins_;
  std::uint64_t count_ = 0;
  Time sum_{}, min_{}, max_{};
};

}  // namespace stp::perf
