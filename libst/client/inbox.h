// SPDX-License-Identifier: BSD-3-Clause
// Takes headers from a Schedule Header Queue: the oldest, or the oldest of one sender. Headers of
// other senders before it are set aside, in order, for later calls.
#pragma once

#include <deque>

#include "stp/channel/user_side.h"

namespace stp::client {

inline constexpr std::uint64_t kAnyone = 0;

// Not thread-safe.
class Inbox {
 public:
  // The most headers set aside.
  static constexpr std::size_t kMostAside = 4096;

  // Returns 1 and the oldest header from `sender` (a MAC address, or kAnyone); 0: there is none;
  // -ENOBUFS: too many headers of others are set aside to search the queue further.
  int take(UserChannel& channel, std::uint64_t sender, ReceivedEntry& out);

 private:
  std::deque<ReceivedEntry> aside_;
};

}  // namespace stp::client
