// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/random.h"

#include <sys/random.h>

#include <array>
#include <mutex>

namespace stp::port {
namespace {

// Asks the kernel for a block at a time. Keys guard connections: nothing weaker takes its place.
class SystemRandom final : public Random {
 public:
  std::uint32_t next() override {
    const std::lock_guard lock(mutex_);
    if (used_ == block_.size()) refill();
    return block_[used_++];
  }

 private:
  void refill() {
    // Up to 256 bytes come whole once the kernel's generator is seeded; before, the call waits,
    // and a signal may end it.
    while (getrandom(block_.data(), sizeof block_, 0) != static_cast<ssize_t>(sizeof block_)) {
    }
    used_ = 0;
  }

  std::mutex mutex_;
  std::array<std::uint32_t, 64> block_{};
  std::size_t used_ = block_.size();
};

}  // namespace

Random& system_random() {
  static SystemRandom random;
  return random;
}

}  // namespace stp::port
