// SPDX-License-Identifier: BSD-3-Clause
// Receiver-driven pacing: CTS wait while too many granted bytes are on their way, so that many
// senders to one receiver do not overflow the switch before it (docs/protocol.md, section 10). CTS
// for which their owner has no memory wait here, too.
#pragma once

#include <optional>

#include "stp/counters.h"
#include "stp/node/connection/port_table.h"
#include "stp/node/inbound/held_grants.h"

namespace stp {

class Pacing {
 public:
  // CTS in one burst; those that are refused in the end count.
  static constexpr unsigned kMostReleased = 32;

  // `limit`: bytes that may be granted over all connections; 0: no bound. `vcs`, `counters` outlive
  // the calls.
  Pacing(std::uint64_t limit, PortTable& vcs, Counters& counters)
      : limit_(limit), vcs_(vcs), counters_(counters) {}

  // The account of a connection of `owner`, and what its purse tells that memory is free again.
  GrantAccount account(Owner& owner) { return {sums_, owner.granted}; }
  bool& memory_freed() { return memory_freed_; }

  // The user of `vc` wants to send the CTS `entry`. True: it waits here, or one that it repeats
  // does; next() gives it when it may go. False: it may go now.
  // protocol: 10.8
  bool hold(Vc& vc, const SendEntry& entry, Time now);
  // It was refused: its owner has no memory to keep track of the Block. False: too many wait.
  // protocol: 7.19
  bool hold_for_memory(Vc& vc, const SendEntry& entry, Time now);
  // No CTS waits.
  [[nodiscard]] bool empty() const { return held_.empty(); }
  // Before the first next() of a burst.
  void begin_burst(Time now);
  struct Grant {
    Vc& vc;
    SendEntry entry;
  };
  // Takes the CTS that goes next, of the Transfer nearest to its end, now and then of the oldest.
  // Looks at no more than `left`, which becomes less. None: no other may go now.
  // protocol: 10.9
  std::optional<Grant> next(unsigned& left, Time now);
  // It takes more memory than when it was held, its Transfer was forgotten say: it waits on.
  void hold_again(const Grant& grant, Time now);
  // The peer of `vc` has Slots again.
  void has_credit(Vc& vc);
  // `vc`, or its Transfer `r_id`, is over: a CTS of it must not begin it anew.
  void drop(Vc& vc);
  void drop(Vc& vc, std::uint32_t r_id);
  // What was dropped is taken down in slices: up to `most` CTS. Returns how many it was.
  std::size_t tidy(std::size_t most) { return held_.tidy(most); }
  [[nodiscard]] bool untidy() const { return held_.untidy(); }

  // A CTS of `vc` leaves: from now on it is seen whether anything comes of its grants.
  void watch(Vc& vc, Time now);
  // Grants of which nothing has come for long hold up no others.
  // protocol: 10.12
  void write_off(Time now);
  // The next look. Nobody has to look while nothing is held back.
  [[nodiscard]] Time deadline() const;

 private:
  void hold(Vc& vc, const SendEntry& entry, const Inbound::Demand& demand);
  void look_at_memory_by(Time time) { memory_look_ = std::min(memory_look_, time); }
  void forget_idle_transfers();

  const std::uint64_t limit_;
  PortTable& vcs_;
  Counters& counters_;
  NodeGrants sums_;
  HeldGrants held_;
  bool memory_freed_ = false;  // some that was missing has come back
  // Then a look whether there is memory for one: others may have given some of theirs back.
  Time memory_look_ = kNever;
  std::size_t idle_look_ = 0;  // the Port that this look came to
  // None of them can go while more than this is granted.
  std::uint64_t release_from_ = ~std::uint64_t{0};
  std::uint64_t releases_ = 0;
  LinkedList<Vc, IsWatched> watched_;  // connections with grants, in the order of their next look
};

}  // namespace stp
