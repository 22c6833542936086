// SPDX-License-Identifier: BSD-3-Clause
// Takes headers out of a Schedule Header Queue: the oldest, or the oldest of one sender. Those of
// others that stood before it are set aside, in their order, for whoever asks for them.
#pragma once

#include <deque>

#include "stp/channel/user_side.h"

namespace stp::client {

inline constexpr std::uint64_t kAnyone = 0;

// One thread at a time.
class Inbox {
 public:
  // Headers set aside at most.
  static constexpr std::size_t kMostAside = 4096;

  // 1: `out` is the oldest header from `sender` (a MAC address, or kAnyone). 0: none is there.
  // -ENOBUFS: so much of others has been set aside that the queue cannot be looked through.
  int take(UserChannel& channel, std::uint64_t sender, ReceivedEntry& out);

 private:
  std::deque<ReceivedEntry> aside_;
};

}  // namespace stp::client
