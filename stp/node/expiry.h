// SPDX-License-Identifier: BSD-3-Clause
// Does what time makes due: retries, keep-alive, Blocks to request again, and the freeing of what
// has ended. One call does a bounded amount of it.
#pragma once

#include "stp/node/connection/listeners.h"
#include "stp/node/connection/recovery.h"

namespace stp {

class Expiry {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    PortTable& vcs;
    VcTimers& timers;
    WakeUps& wake_ups;
    NodeDepartures& departures;
    Pacing& pacing;
    Tidying& tidying;
    VcEndings& endings;
    Listeners& listeners;
    StateExchange& states;
    Recovery& recovery;
  };
  explicit Expiry(const Uses& uses) : use_(uses) {}

  // As Node::expire() and Node::next_deadline().
  void expire(Time now);
  [[nodiscard]] Time next_deadline() const;

 private:
  std::size_t expire(Vc& vc, Time now);

  Uses use_;
};

}  // namespace stp
