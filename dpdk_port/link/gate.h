// SPDX-License-Identifier: BSD-3-Clause
// Lets other threads use something that one thread, its owner, takes away now and then. A user
// enters and leaves without waiting, and writes no cache line but its own. The owner waits until
// all have left.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "dpdk_port/link/frame_buffers.h"
#include "stp/base/assert.h"
#include "stp/node/shards.h"

namespace stp::port {

class Gate {
 public:
  // ---- a user; the owner needs neither
  // False: it is closed. `user`: less than Shards::kMost, of one thread at a time.
  bool enter(unsigned user) {
    std::atomic<bool>& inside = places_[user].inside;
    // Either the owner sees who is inside, or that user sees the closed gate: each stores before it
    // loads.
    inside.store(true, std::memory_order_seq_cst);
    if (open_.load(std::memory_order_seq_cst)) return true;
    inside.store(false, std::memory_order_release);
    return false;
  }
  void leave(unsigned user) { places_[user].inside.store(false, std::memory_order_release); }

  // ---- the owner
  [[nodiscard]] bool is_open() const { return open_.load(std::memory_order_relaxed); }
  void open() { open_.store(true, std::memory_order_seq_cst); }
  // Returns when nobody is inside. A user stays for one turn of its Port.
  void close() {
    open_.store(false, std::memory_order_seq_cst);
    for (const Place& place : places_) {
      // A sleep, and no yield: this thread may have a higher priority than the one it waits for.
      while (place.inside.load(std::memory_order_seq_cst))
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  // A user's cache line.
  struct alignas(kCacheLine) Place {
    std::atomic<bool> inside{false};
  };

 private:
  alignas(kCacheLine) std::atomic<bool> open_{false};
  std::array<Place, Shards::kMost> places_;
};

}  // namespace stp::port
