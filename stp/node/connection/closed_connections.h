// SPDX-License-Identifier: BSD-3-Clause
// Peers whose connections ended recently: a late Request_Connection of theirs makes no new
// connection (section 5). Bounded: when full, drops the oldest entry.
#pragma once

#include <deque>
#include <map>
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
    auto& until = until_[peer];
    if (until > now) return;
    until = now + kMemory;
    queue_.push_back({until, peer});
  }
  [[nodiscard]] bool contains(const PeerName& peer, Time now) {
    forget(now);
    const auto at = until_.find(peer);
    return at != until_.end() && at->second > now;
  }

 private:
  // Limits the work per call when many entries expire at once; later calls drop the rest.
  static constexpr unsigned kForgottenAtOnce = 16;
  struct Entry {
    Time until;
    PeerName peer;
  };
  void drop_oldest() {
    const auto& oldest = queue_.front();
    // The peer may have connected and closed again since.
    if (const auto at = until_.find(oldest.peer); at != until_.end() && at->second == oldest.until)
      until_.erase(at);
    queue_.pop_front();
  }
  void forget(Time now) {
    for (auto left = kForgottenAtOnce; left > 0 && !queue_.empty() && queue_.front().until <= now;
         --left)
      drop_oldest();
  }
  std::deque<Entry> queue_;
  std::map<PeerName, Time> until_;
};

}  // namespace stp
