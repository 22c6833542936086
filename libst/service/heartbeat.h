// SPDX-License-Identifier: BSD-3-Clause
// Shows that a thread is alive: the thread beats, another one checks that the count changes.
#pragma once

#include <atomic>
#include <cstdint>

namespace stp::service {

class Heartbeat {
 public:
  // Call from one thread only: the increment is not atomic.
  void beat() {
    beats_.store(beats_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t beats() const { return beats_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> beats_{0};
};

}  // namespace stp::service
