// SPDX-License-Identifier: BSD-3-Clause
// How a test is measured: for how long, the durations of its operations, what this process uses,
// and the result.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

// What this process has used: CPU time, in its own code and in the kernel, and, if the machine
// counts them, instructions.
struct Usage {
  double user_seconds = 0, system_seconds = 0;
  std::optional<std::uint64_t> instructions;

  [[nodiscard]] double cpu_seconds() const { return user_seconds + system_seconds; }
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

// How long the turns of a loop took that polls: all of them, and those in which nothing happened.
struct TurnTimes {
  std::chrono::nanoseconds all{}, idle{};

  // The share of the time in which there was work; nullopt: no turns were measured.
  [[nodiscard]] std::optional<double> working() const;
};
TurnTimes operator-(const TurnTimes& later, const TurnTimes& earlier);

// Measures one turn in eight. A turn counts as idle if it takes at most twice as long as one takes
// while the link carries nothing.
class Turns {
 public:
  // Call this while the link carries nothing.
  template <typename Turn>
  void learn(Turn&& turn) {
    constexpr std::size_t kTurns = 201;
    std::vector<std::chrono::nanoseconds> times;
    while (times.size() < kTurns) times.push_back(time_of(turn));
    std::nth_element(times.begin(), times.begin() + kTurns / 2, times.end());
    longest_idle_ = 2 * times[kTurns / 2];
  }
  template <typename Turn>
  void take(Turn&& turn) {
    constexpr unsigned kEvery = 8;
    if (longest_idle_ == std::chrono::nanoseconds(0) || ++count_ % kEvery != 0) return turn();
    add(time_of(turn));
  }
  void add(std::chrono::nanoseconds time) {
    times_.all += time;
    if (time <= longest_idle_) times_.idle += time;
  }
  [[nodiscard]] const TurnTimes& times() const { return times_; }

 private:
  template <typename Turn>
  static std::chrono::nanoseconds time_of(Turn&& turn) {
    const auto begin = Clock::now();
    turn();
    return Clock::now() - begin;
  }

  std::chrono::nanoseconds longest_idle_{};  // 0: not known, so no turn is measured
  unsigned count_ = 0;
  TurnTimes times_;
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

// What is known of one side of a test.
struct Side {
  Usage usage;
  TurnTimes turns{};
  std::uint64_t memcpy_rate = 0;  // bytes a second that it copies; 0: not measured
  std::uint32_t megabits = 0;     // rate of its link, 10^6 bits a second; 0: not known
};

// The result of a test, and its output.
struct Result {
  std::string what;  // "latency", "bandwidth", ...
  std::string operation;
  std::string link;
  std::uint64_t size = 0;
  std::uint32_t window = 1, connections = 1;
  bool bidirectional = false;
  bool sleeps = false;  // waits in the kernel instead of polling

  double seconds = 0;      // duration of the measurement
  bool prolonged = false;  // until the first operation was complete
  std::uint64_t operations = 0;
  std::uint64_t peer_operations = 0;   // bidirectional: those of the server
  const Histogram* latency = nullptr;  // nullptr: a test of throughput
  std::optional<Side> here, peer;
};

// What kept the test from being faster, as far as the figures of both sides tell.
struct Limit {
  std::string name;    // "receiver's copy", "sender's system calls", "link", ...; "": not known
  std::string reason;  // the figures that show it
};
[[nodiscard]] Limit limit_of(const Result& result);

[[nodiscard]] std::string text_of(const Result& result);  // lines for people
[[nodiscard]] std::string json_of(const Result& result);  // one line

// "1048576" or "1M".
std::string text_of_size(std::uint64_t size);

}  // namespace stp::perf
