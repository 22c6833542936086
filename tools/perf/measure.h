// SPDX-License-Identifier: BSD-3-Clause
// How a test is measured: for how long, the durations of its operations, what this process uses,
// and the result.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace stp::perf {

using Clock = std::chrono::steady_clock;

// How long to warm up and to measure, and the display of progress.
struct Pace {
  std::chrono::duration<double> warm_up{0.5}, measure{2};
  bool quiet = false;  // prints no progress
};

// One stretch of time, which begins when it is constructed. Prints progress to a terminal once per
// second. past() reads the clock.
class Stretch {
 public:
  Stretch(std::chrono::duration<double> length, bool quiet, const char* name);
  ~Stretch();
  Stretch(const Stretch&) = delete;
  Stretch& operator=(const Stretch&) = delete;

  // Returns whether the time is over. `operations`: how many are done so far, for the display.
  [[nodiscard]] bool past(std::uint64_t operations);
  [[nodiscard]] double seconds() const;  // since it began

 private:
  void say(std::uint64_t operations, Clock::time_point now);

  Clock::time_point begin_ = Clock::now(), end_, next_word_;
  const char* name_;
  bool speaks_, has_spoken_ = false;
};

// What this process has used: CPU time and, if the machine counts them, instructions.
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

// Collects durations in memory of fixed size. Percentiles are within half a percent.
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

// The result of a test, and its output.
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
