// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/engine.h"

#include <sys/random.h>

#include <algorithm>
#include <array>

#include "stp/base/assert.h"
#include "stp/base/mutex.h"

namespace stp::port {

unsigned Loopback::deliver_some(Engine& engine, Time now) {
  const std::span<const LoopedFrame> waiting(frames_.data(), count_);
  for (std::size_t at = 0; at < waiting.size(); at += kBurst) {
    engine.receive_looped(waiting.subspan(at, std::min(kBurst, waiting.size() - at)), now);
  }
  const auto attached = std::partition(tokens_.begin(), tokens_.begin() + count_,
                                       [](auto& token) { return token.region != kNoneId; });
  if (attached != tokens_.begin()) engine.transmitted({tokens_.begin(), attached});
  count_ = 0;
  return static_cast<unsigned>(waiting.size());
}

namespace {

// Reads the kernel's source a block at a time. Keys guard connections, so there is no weaker
// fallback.
class SystemRandom final : public Random {
 public:
  std::uint32_t next() override {
    const Lock lock(mutex_);
    if (used_ == block_.size()) refill();
    return block_[used_++];
  }

 private:
  void refill() STP_REQUIRES(mutex_) {
    // Requests of up to 256 bytes are complete once the kernel's generator is seeded; before, the
    // call waits and a signal may end it.
    while (getrandom(block_.data(), sizeof block_, 0) != static_cast<ssize_t>(sizeof block_)) {
    }
    used_ = 0;
  }

  Mutex mutex_;
  std::array<std::uint32_t, 64> block_ STP_GUARDED_BY(mutex_){};
  std::size_t used_ STP_GUARDED_BY(mutex_) = 64;
};

}  // namespace

Random& system_random() {
  static SystemRandom random;
  return random;
}

}  // namespace stp::port
