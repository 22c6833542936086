// SPDX-License-Identifier: BSD-3-Clause
// Regions by key: PeerRegions has those of the peer that this side uses, ServedRegions those of
// this side that the peer uses.
//
// The life of a region of the peer's:
//
//   Asked --- opened ---> Open --- revoked ---> Closed
//     '----- refused ----------------------------^
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "stp/base/fetch_ahead.h"
#include "stp/base/state_machine.h"
#include "stp/transfer/sequencer.h"

namespace stp::managed {

enum class PeerRegionState : std::uint8_t { kAsked, kOpen, kClosed };

enum class PeerRegionEvent : std::uint8_t {
  kOpened,   // the peer serves it
  kRefused,  // the peer does not serve it, or was not asked
  kRevoked,  // the peer has revoked it
};

inline constexpr Transition<PeerRegionState, PeerRegionEvent> kPeerRegionTransitions[] = {
    {PeerRegionState::kAsked, PeerRegionEvent::kOpened, PeerRegionState::kOpen},
    {PeerRegionState::kAsked, PeerRegionEvent::kRefused, PeerRegionState::kClosed},
    {PeerRegionState::kOpen, PeerRegionEvent::kRevoked, PeerRegionState::kClosed},
};

struct alignas(kCacheLine) PeerRegion {
  using State = PeerRegionState;
  using Event = PeerRegionEvent;
  Machine<kPeerRegionTransitions> state;
  int status = 0;  // kClosed: the reason
  RemoteRegion region;
  unsigned operations = 0;  // under way: the entry stays in place while there are any
};

// Asks the peer for a region when its key is first used, and keeps at most kMost of them. An entry
// that no operation uses gives way to a new one.
class PeerRegions {
 public:
  static constexpr std::size_t kMost = 64;

  // Brings the region used last into the caches.
  void fetch_ahead() const {
    if (recent_.second != nullptr) fetch_lines(recent_.second, recent_.second + 1);
  }
  // The region of that key. nullptr: all kMost entries are in use.
  PeerRegion* find(Sequencer& sequencer, std::uint32_t key) {
    if (recent_.first == key && recent_.second != nullptr) return recent_.second;
    return look_up(sequencer, key);
  }
  // The peer's answer.
  void on_answer(const Completion& c);
  void on_revoked(const RemoteRegion& region);
  void clear() {
    recent_ = {};
    regions_.clear();
  }

 private:
  PeerRegion* look_up(Sequencer& sequencer, std::uint32_t key);
  void make_room(Sequencer& sequencer);

  std::map<std::uint32_t, PeerRegion> regions_;     // by key
  std::pair<std::uint32_t, PeerRegion*> recent_{};  // the one found last; nullptr: none
};

class ServedRegions {
 public:
  // Serves the region that the peer requests, under the key `request.tag`.
  void serve(Sequencer& sequencer, const Completion& request, const Landing& landing,
             const RegionTerms& terms);
  // The peer has ended a region.
  void on_ended(std::uint32_t number) { keys_.erase(number); }
  // Whether the peer uses the region of that key.
  [[nodiscard]] bool serves(std::uint32_t key) const;
  void revoke(Sequencer& sequencer, std::uint32_t key);
  void clear() { keys_.clear(); }

 private:
  std::map<std::uint32_t, std::uint32_t> keys_;  // by number
};

}  // namespace stp::managed
