// SPDX-License-Identifier: BSD-3-Clause
// Who was connected until just now: a late Request_Connection of theirs makes no new connection
// (section 5). Bounded: when full, the oldest is forgotten first.
#pragma once

#include <deque>
#include <set>
#include <tuple>

#include "stp/types.h"

namespace stp {

struct PeerName {
  MacAddr mac;
  std::uint16_t port = 0;
  std::uint32_t key = 0;
  friend auto operator<=>(const PeerName&, const PeerName&) = default;
};

// protocol: 5.10
class ClosedConnections {
 public:
  static constexpr Time kMemory = 4 * kSecond;
  static constexpr std::size_t kCapacity = 65'536;

  void remember(const PeerName& peer, Time now) {
    forget(now);
    if (queue_.size() == kCapacity) drop_oldest();
    if (names_.insert(peer).second) queue_.push_back({now + kMemory, peer});
  }
  [[nodiscard]] bool contains(const PeerName& peer, Time now) {
    forget(now);
    return names_.contains(peer);
  }

 private:
  struct Entry {
    Time until;
    PeerName peer;
  };
  void drop_oldest() {
    names_.erase(queue_.front().peer);
    queue_.pop_front();
  }
  void forget(Time now) {
    while (!queue_.empty() && queue_.front().until <= now) drop_oldest();
  }
  std::deque<Entry> queue_;
  std::set<PeerName> names_;
};

}  // namespace stp
