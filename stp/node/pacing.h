// SPDX-License-Identifier: BSD-3-Clause
// Receiver-driven pacing: CTS wait while too many granted bytes are on their way, so that many
// senders to one receiver do not overflow its switch (docs/protocol.md, section 10). CTS also wait
// here while their owner has no memory to track them.
#pragma once

#include <optional>

#include "stp/counters.h"
#include "stp/node/connection/port_table.h"
#include "stp/node/inbound/held_grants.h"

namespace stp {

class Pacing {
 public:
  // The most CTS in one burst, including those refused in the end.
  static constexpr unsigned kMostReleased = 32;

  // `limit`: bytes that may be granted over all connections in STUs of 2^`max_stu` bytes, or as
  // many shorter STUs; 0: no limit. `vcs` and `counters` must outlive this.
  // `routed`: as in NodeConfig.
  Pacing(std::uint64_t limit, unsigned max_stu, PortTable& vcs, Counters& counters,
         bool routed = false)
      : limit_(limit), max_stu_(max_stu), routed_(routed), vcs_(vcs), counters_(counters) {}

  // account: for the new connection `vc`, whose peer is known, with STUs of 2^`stu_log2` bytes.
  // memory_freed: WindowPurse sets it when memory that was short is free again.
  GrantAccount account(Vc& vc, unsigned stu_log2);
  bool& memory_freed() { return memory_freed_; }

  // The user of `vc` wants to send the CTS `entry`. True: it waits here, or the CTS that it repeats
  // does; next() returns it when it may go. False: it may go now.
  // protocol: 10.8
  bool hold(Vc& vc, const SendEntry& entry, Time now);
  // Call when `entry` was refused because its owner has no memory to track the Block. False: too
  // many wait.
  // protocol: 7.19
  bool hold_for_memory(Vc& vc, const SendEntry& entry, Time now);
  // No CTS waits.
  [[nodiscard]] bool empty() const { return held_.empty(); }
  // Call before the first next() of a burst.
  void begin_burst(Time now);
  struct Grant {
    Vc& vc;
    SendEntry entry;
  };
  // Takes the CTS that goes next: the one of the Transfer nearest to its end, from time to time the
  // oldest. Examines at most `left` CTS and reduces `left`. nullopt: no other may go now.
  // protocol: 10.9
  std::optional<Grant> next(unsigned& left, Time now);
  // Call when the CTS needs more memory than when it was held, e.g. because its Transfer was
  // forgotten. It waits again.
  void hold_again(const Grant& grant, Time now);
  // The peer of `vc` has Slots again.
  void has_credit(Vc& vc);
  // `vc` or its Transfer `r_id` has ended: drops its CTS, so that none starts the Transfer again.
  void drop(Vc& vc);
  void drop(Vc& vc, std::uint32_t r_id);
  // Frees up to `most` dropped CTS. Returns how many.
  std::size_t tidy(std::size_t most) { return held_.tidy(most); }
  [[nodiscard]] bool untidy() const { return held_.untidy(); }

  // A CTS of `vc` leaves: checks from now on whether its grants make progress.
  void watch(Vc& vc, Time now);
  // Grants without progress for long no longer delay others, and CTS that waited for room on a path
  // may go. Call when deadline() has passed, and before transmit().
  void expire(Time now);
  // Time of the next check; kNever while no CTS is held.
  [[nodiscard]] Time deadline() const;

 private:
  void hold(Vc& vc, const SendEntry& entry, const Inbound::Demand& demand);
  [[nodiscard]] bool fits_memory(const Owner& owner, std::uint64_t charge) const {
    return limit_ == 0 || owner.granted == 0 || sums_.charged + charge <= limit_;
  }
  // protocol: 10.12
  void write_off(Time now);
  void look_at_paths();
  static Time patience(const Vc& vc);
  void look_at_memory_by(Time time) { memory_look_ = std::min(memory_look_, time); }
  void forget_idle_transfers();

  const std::uint64_t limit_;
  const unsigned max_stu_;
  const bool routed_;
  PortTable& vcs_;
  Counters& counters_;
  NodeGrants sums_;
  PathTable paths_;
  HeldGrants held_;
  bool memory_freed_ = false;  // memory that was short is free again
  // Time to check whether there is memory for a held CTS: others may have returned some to the
  // budget.
  Time memory_look_ = kNever;
  std::size_t idle_look_ = 0;  // the Port that the check has reached
  // No held CTS can go while more than this is charged.
  std::uint64_t release_from_ = ~std::uint64_t{0};
  std::uint64_t releases_ = 0;
  LinkedList<Vc, IsWatched> watched_;  // connections with grants, ordered by next check
};

}  // namespace stp
