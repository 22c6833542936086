// SPDX-License-Identifier: BSD-3-Clause
// Whether the thread in the background stays awake for frames that a program leaves to it. A
// program may learn of a frame from its memory alone, as consumers of RDMA writes do: then it makes
// no call while it waits, and all that it posts is answers. Each frame buys a bounded time awake.
#pragma once

#include <algorithm>

#include "stp/types.h"

namespace stp::service {

class Attention {
 public:
  enum class Rest {
    kYield,  // look again at once
    kNap,    // in kNap
    kSleep   // as if it were not attentive
  };

  // After a frame or what it is answered with, as long as nobody else wants the core, and then.
  static constexpr Time kAwake = 200 * kMicrosecond, kNapping = 20 * kMillisecond;
  static constexpr Time kNap = 20 * kMicrosecond;
  // Who yields and does not have the core back so soon shares it with a program that spins. Who
  // wakes goes before who spins; who yields goes after. So it naps for a while.
  static constexpr Time kLateBack = 20 * kMicrosecond, kShared = 50 * kMillisecond;
  // A program that posts more than this for each frame that comes is a sender: it looks after its
  // frames itself.
  static constexpr std::int64_t kPostsPerFrame = 4, kMostPosts = 64;

  // The program may be spinning on memory: it was here, and does not sleep in a call.
  void may_spin(bool may) {
    may_ = may;
    if (!may) end();
  }
  [[nodiscard]] bool possible() const { return may_; }
  // So many frames came to the thread, and the program has posted so often since the last call.
  void turn(std::uint64_t frames, std::uint64_t posts, Time now) {
    if (!may_) return;
    on_ |= frames != 0;
    posts_left_ += static_cast<std::int64_t>(frames) * kPostsPerFrame;
    posts_left_ = std::min(posts_left_, kMostPosts) - static_cast<std::int64_t>(posts);
    if (posts_left_ < 0) return end();
    if (on_ && frames + posts != 0) active_ = now;
  }
  void yielded(Time begin, Time now) {
    if (now - begin > kLateBack) shared_until_ = now + kShared;
  }
  void end() {
    on_ = false;
    posts_left_ = 0;
  }
  [[nodiscard]] bool on() const { return on_; }
  // What to do in a turn that brought nothing.
  [[nodiscard]] Rest rest(Time now) const {
    auto const idle = now - active_;
    if (!on_ || idle >= kNapping) return Rest::kSleep;
    return idle < kAwake && now >= shared_until_ ? Rest::kYield : Rest::kNap;
  }

 private:
  bool may_ = false, on_ = false;
  Time active_ = 0, shared_until_ = 0;
  std::int64_t posts_left_ = 0;
};

}  // namespace stp::service
