// SPDX-License-Identifier: BSD-3-Clause
// Decides whether the background thread stays awake for a program that polls memory and makes no
// calls, as consumers of RDMA writes do. Such a program posts only answers to what it finds. Each
// frame buys a bounded time awake.
#pragma once

#include <algorithm>

#include "stp/types.h"

namespace stp::service {

class Attention {
 public:
  enum class Rest {
    kYield,  // offer the core to other threads, then poll again
    kNap,    // sleep for kNap
    kSleep   // sleep as usual
  };

  // After a frame or a post the thread stays awake for kAwake if nobody else wants the core, then
  // naps until kNapping has passed.
  static constexpr Time kAwake = 200 * kMicrosecond, kNapping = 20 * kMillisecond;
  static constexpr Time kNap = 20 * kMicrosecond;
  // A yield that takes longer than kLateBack shows that the thread shares its core with a spinning
  // program. The scheduler runs a thread that wakes before one that spins, and a thread that yields
  // after it. So for kShared the thread naps and does not yield.
  static constexpr Time kLateBack = 20 * kMicrosecond, kShared = 50 * kMillisecond;
  // A program that posts more than kPostsPerFrame times per frame received is a sender: it looks
  // for its frames itself.
  static constexpr std::int64_t kPostsPerFrame = 4, kMostPosts = 64;

  // `may`: the program has called libst and does not sleep in a call, so it may be polling memory.
  void may_spin(bool may) {
    may_ = may;
    if (!may) end();
  }
  [[nodiscard]] bool possible() const { return may_; }
  // `frames`: how many the thread received. `posts`: how often the program has posted since the
  // last call.
  void turn(std::uint64_t frames, std::uint64_t posts, Time now) {
    if (!may_) return;
    on_ |= frames != 0;
    posts_left_ += static_cast<std::int64_t>(frames) * kPostsPerFrame;
    posts_left_ = std::min(posts_left_, kMostPosts) - static_cast<std::int64_t>(posts);
    if (posts_left_ < 0) return end();
    if (on_ && frames + posts != 0) active_ = now;
  }
  // Call after a yield that lasted from `begin` to `now`.
  void yielded(Time begin, Time now) {
    if (now - begin > kLateBack) shared_until_ = now + kShared;
  }
  void end() {
    on_ = false;
    posts_left_ = 0;
  }
  [[nodiscard]] bool on() const { return on_; }
  // What to do after a turn without work.
  [[nodiscard]] Rest rest(Time now) const {
    const auto idle = now - active_;
    if (!on_ || idle >= kNapping) return Rest::kSleep;
    return idle < kAwake && now >= shared_until_ ? Rest::kYield : Rest::kNap;
  }

 private:
  bool may_ = false, on_ = false;
  Time active_ = 0, shared_until_ = 0;
  std::int64_t posts_left_ = 0;
};

}  // namespace stp::service
