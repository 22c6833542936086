// SPDX-License-Identifier: BSD-3-Clause
// Recent refusals by users, with their option payload: if the answer is lost, a repeated
// Request_Connection gets the same answer. Bounded: when full, drops the oldest entry.
#pragma once

#include <deque>
#include <map>

#include "stp/node/connection/closed_connections.h"
#include "stp/node/node.h"

namespace stp {

// protocol: 5.29
class Refusals {
 public:
  static constexpr Time kMemory = ClosedConnections::kMemory;
  static constexpr std::size_t kCapacity = 1'024;

  void remember(const PeerName& peer, const OptionPayload& option, Time now) {
    forget(now);
    if (queue_.size() == kCapacity) drop_oldest();
    if (words_.emplace(peer, option).second) queue_.push_back({now + kMemory, peer});
  }
  // nullptr: not refused, or too long ago.
  [[nodiscard]] const OptionPayload* find(const PeerName& peer, Time now) {
    forget(now);
    const auto at = words_.find(peer);
    return at == words_.end() ? nullptr : &at->second;
  }

 private:
  struct Entry {
    Time until;
    PeerName peer;
  };
  void drop_oldest() {
    words_.erase(queue_.front().peer);
    queue_.pop_front();
  }
  void forget(Time now) {
    while (!queue_.empty() && queue_.front().until <= now) drop_oldest();
  }
  std::deque<Entry> queue_;
  std::map<PeerName, OptionPayload> words_;
};

}  // namespace stp
