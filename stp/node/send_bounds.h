// SPDX-License-Identifier: BSD-3-Clause
// What holds users' frames back where the way to a station is shared with others
// (docs/protocol.md, section 13). Without congestion control nothing is held back.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "stp/node/common.h"
#include "stp/node/connection/port_table.h"
#include "stp/node/objects.h"
#include "stp/node/pacing.h"

namespace stp {

// Of connections: while too much of what was sent along a path is not proven to have arrived.
class SendBounds {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    PortTable& vcs;
    Pacing& pacing;
    Turns& turns;
  };
  explicit SendBounds(const Uses& uses) : use_(uses) {}

  // How many frames `vc`, whose path is `path`, may send. 0: it is queued again when it may.
  // protocol: 13.16
  std::size_t room(Vc& vc, Path& path, Time now);
  // It has sent `bytes`.
  void sent(Vc& vc, Path& path, std::uint64_t bytes, Time now);
  // An answer (RSR) without the name of a Transfer has arrived. True: it is to a question of this.
  bool answered(Vc& vc, std::uint32_t sync, Time now);
  // Asks again what is not answered. Call when deadline() has passed.
  void expire(Time now);
  [[nodiscard]] Time deadline() const { return use_.pacing.paths().timers().next(); }

 private:
  void ask(Vc& vc, SentWindow& window, Time now);
  void wake(SentWindow& window, Time now);
  void expire(SentWindow& window, Time now);
  Vc* asker(SentWindow& window);

  Uses use_;
};

// Of Ports of connectionless endpoints: beyond a rate to each station. Nothing answers what they
// send, so nobody can tell whether the way carries more.
class PortRates {
 public:
  // The budget of a station, and the time in which it becomes as much again.
  static constexpr std::uint64_t kBudget = 16'384;  // bytes
  static constexpr Time kPeriod = 100 * kMillisecond;

  // They must outlive this.
  struct Uses {
    Common& common;
    PortTable& vcs;
    Turns& turns;
  };
  explicit PortRates(const Uses& uses) : use_(uses) {}

  // Whether the Port `vc` may send its next frame, which goes to `station`. False: it is queued
  // again when it may.
  // protocol: 13.17
  bool may_send(Vc& vc, const MacAddr& station, Time now);
  // A frame of `bytes` goes to `station`.
  void sent(const MacAddr& station, std::uint64_t bytes, Time now);
  // Queues Ports again whose time has come. Call when deadline() has passed.
  void expire(Time now);
  [[nodiscard]] Time deadline() const { return due_.empty() ? kNever : due_.begin()->first; }

 private:
  // Stations that share a place share a budget: so any number of them needs no memory.
  static constexpr std::size_t kPlaces = 1'024;
  // What a Node sends to itself takes no way.
  [[nodiscard]] bool is_bounded(const MacAddr& station) const {
    return station != use_.common.config.mac && use_.common.is_shared(station);
  }
  static std::size_t place_of(const MacAddr& station) {
    return (station.to_u64() * 0x9e37'79b9'7f4a'7c15 >> 48) % kPlaces;
  }
  [[nodiscard]] Time has_budget_at(std::size_t place) const {
    return spent_until_[place] < kPeriod ? 0 : spent_until_[place] - kPeriod;
  }
  void wake_first(std::deque<VcId>& ports);

  Uses use_;
  std::array<Time, kPlaces> spent_until_{};  // then what has been sent no longer counts
  // The Ports that wait for a place, and when each of these places has a budget.
  std::map<std::size_t, std::deque<VcId>> waiting_;
  std::set<std::pair<Time, std::size_t>> due_;
};

}  // namespace stp
