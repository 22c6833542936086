// SPDX-License-Identifier: BSD-3-Clause
// Whether a thread that polls shares its core with others that spin, as the length of its yields
// shows. The scheduler runs a thread that wakes before one that spins, and a thread that yields
// after it, on some kernels after all of its slice. So such a thread sleeps for a while instead.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace stp::os {

// When yields show it, and for how long. In nanoseconds, as all times here.
struct SharedCoreRule {
  std::uint64_t late_back = 20'000;  // a yield that takes longer is late
  unsigned late_in_a_row = 1;        // so many are no accident
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
    const auto so_many = std::min(late + 1, rule_.late_in_a_row);
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

}  // namespace stp::os
