// SPDX-License-Identifier: BSD-3-Clause
// The requesters that have, or lately had, a connection made by their Request_Connection. A
// repeated or late RC of theirs makes no second one.
#pragma once

#include <map>

#include "stp/node/connection/closed_connections.h"
#include "stp/node/objects.h"

namespace stp {

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
