// SPDX-License-Identifier: BSD-3-Clause
// What a Node remembers of requesters: those that have a connection, ended ones, and refusals
// (section 5).
#pragma once

#include <deque>
#include <map>
#include <tuple>

#include "stp/node/node.h"
#include "stp/node/objects.h"
#include "stp/types.h"

namespace stp {

struct PeerName {
  MacAddr mac;
  std::uint16_t port = 0;
  std::uint32_t key = 0;
  friend auto operator<=>(const PeerName&, const PeerName&) = default;
};

// Peers whose connections ended recently: a late Request_Connection of theirs makes no new
// connection (section 5). Bounded: when full, drops the oldest entry.
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

// Recent refusals by users, with their option payload: if the answer is lost, a repeated
// Request_Connection gets the same answer. Bounded: when full, drops the oldest entry.
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

// The requesters that have, or lately had, a connection made by their Request_Connection. A
// repeated or late RC of theirs makes no second one.
class KnownPeers {
 public:
  // The connection that the RC of `peer` has made; nullptr: none, or it has ended.
  [[nodiscard]] Vc* find(const PeerName& peer) const {
    const auto at = vcs_.find(peer);
    return at == vcs_.end() ? nullptr : at->second;
  }
  // Whether a connection of `peer` ended lately, whoever requested it.
  // protocol: 5.10
  [[nodiscard]] bool ended_lately(const PeerName& peer, Time now) {
    return closed_.contains(peer, now);
  }
  // The RC of its peer has made `vc`.
  void add(Vc& vc) { vcs_.emplace(name_of(vc), &vc); }
  // `vc` has ended. `remember`: late RCs of its peer are to be recognised.
  void end(const Vc& vc, bool remember, Time now) {
    if (remember && vc.peer_key != 0 && !vc.connectionless()) closed_.remember(name_of(vc), now);
    if (vc.passive) vcs_.erase(name_of(vc));
  }
  // A connection of `peer` has ended before it was made here.
  void ended(const PeerName& peer, Time now) { closed_.remember(peer, now); }

  static PeerName name_of(const Vc& vc) { return {vc.peer_mac, vc.peer_port, vc.peer_key}; }

 private:
  std::map<PeerName, Vc*> vcs_;
  ClosedConnections closed_;
};

}  // namespace stp
