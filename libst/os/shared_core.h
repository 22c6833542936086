// SPDX-License-Identifier: BSD-3-Clause
// Threads that poll, and others that want their cores: whether there are any, and how long a thread
// in the background stays away from a program that does its work.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace stp::os {

// Whether a thread that polls shares its core with others that spin, as the length of its yields
// shows. The scheduler runs a thread that wakes before one that spins, and a thread that yields
// after it, on some kernels after all of its slice. So such a thread sleeps for a while instead.

// When yields show it, and for how long. In nanoseconds, as all times here.
struct SharedCoreRule {
  std::uint64_t late_back = 20'000;     // a yield that takes longer is late
  unsigned late_in_a_row = 1;           // so many are no accident
  std::uint64_t long_away = 1'000'000;  // nor is a single one that takes as long as a slice
  // It holds so long, and twice as long each time that the next yield is late again, up to
  // `longest`.
  std::uint64_t holds = 50'000'000, longest = 50'000'000;
};

// Any thread may call it.
class SharedCore {
 public:
  explicit SharedCore(const SharedCoreRule& rule = {}) : rule_(rule), holds_(rule.holds) {}

  // Call after a yield that lasted from `begin` to `now`.
  void yielded(std::uint64_t begin, std::uint64_t now) {
    const auto late = late_.load(std::memory_order_relaxed);
    if (now - begin <= rule_.late_back) {
      if (late != 0) forget();
      return;
    }
    const auto so_many = now - begin >= rule_.long_away ? rule_.late_in_a_row
                                                        : std::min(late + 1, rule_.late_in_a_row);
    late_.store(so_many, std::memory_order_relaxed);
    if (so_many < rule_.late_in_a_row) return;
    const auto holds = holds_.load(std::memory_order_relaxed);
    until_.store(now + holds, std::memory_order_relaxed);
    holds_.store(std::min(2 * holds, rule_.longest), std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_shared(std::uint64_t now) const {
    return now < until_.load(std::memory_order_relaxed);
  }

 private:
  void forget() {
    late_.store(0, std::memory_order_relaxed);
    holds_.store(rule_.holds, std::memory_order_relaxed);
  }

  const SharedCoreRule rule_;
  std::atomic<unsigned> late_{0};  // yields, one after the other
  std::atomic<std::uint64_t> holds_, until_{0};
};

// Computes how long the background thread stays away from a Service that the program drives itself.
// Each look takes the program's core for some microseconds, so the interval doubles for as long as
// the program keeps coming. The cost: the thread returns that much later when the program stops
// driving the Service without calling it.
class Absence {
 public:
  static constexpr std::uint64_t kLongest = 2'000'000;
  static constexpr std::uint64_t kSooner = 5;  // divides the shortest interval

  explicit Absence(std::uint64_t shortest) : shortest_(shortest), next_(shortest) {}

  // Call if the program has driven the Service since the last look. Returns the time until the next
  // look.
  std::uint64_t prolong() {
    const auto now = next_;
    next_ = std::min(next_ * 2, kLongest);
    return now;
  }
  // Call if the program has not driven the Service since the last look. `soon`: it leaves incoming
  // frames to the thread, so the next interval is shorter.
  void end(bool soon = false) { next_ = soon ? shortest_ / kSooner : shortest_; }

 private:
  const std::uint64_t shortest_;
  std::uint64_t next_;
};

}  // namespace stp::os
