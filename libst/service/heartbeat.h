// SPDX-License-Identifier: BSD-3-Clause
// Shows that a thread goes on: it beats, somebody else looks whether it still does.
#pragma once

#include <atomic>
#include <cstdint>

namespace stp::service {

class Heartbeat {
 public:
  // One thread only: no two beats at a time, so that none has to be atomic with the other.
  void beat() {
    beats_.store(beats_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t beats() const { return beats_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> beats_{0};
};

}  // namespace stp::service
