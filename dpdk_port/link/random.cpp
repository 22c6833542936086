// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/random.h"

#include <sys/random.h>

#include <array>
#include <mutex>

namespace stp::port {
namespace {

// Reads the kernel's source a block at a time. Keys guard connections, so there is no weaker
// fallback.
class SystemRandom final : public Random {
 public:
  std::uint32_t next() override {
    const std::lock_guard lock(mutex_);
    if (used_ == block_.size()) refill();
    return block_[used_++];
  }

 private:
  void refill() {
    // Requests of up to 256 bytes are complete once the kernel's generator is seeded; before, the
    // call waits and a signal may end it.
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
