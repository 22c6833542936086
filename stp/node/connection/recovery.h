// SPDX-License-Identifier: BSD-3-Clause
// Recovery of granted Blocks that do not arrive: repeats their CTS with the first missing byte, so
// that the sender repeats only the tail (docs/protocol.md, section 10).
#pragma once

#include "stp/node/connection/state_exchange.h"

namespace stp {

class Recovery {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    NodeDepartures& departures;
    StateExchange& states;
    VcTimers& timers;
  };
  explicit Recovery(const Uses& uses) : use_(uses) {}

  // A Block was granted: watches its progress from now on, if the endpoint wants that.
  void expect_data(Vc& vc, Time now);
  // A Block whose interval had been doubled makes progress again.
  // protocol: 10.3
  void look_earlier(Vc& vc, Time now);
  // Requests Blocks that others have passed by so far that they are lost.
  // protocol: 10.22
  void ask_for_lost(Vc& vc, Time now);
  // Requests what is missing of a Block whose Last has arrived, if that is so far behind that it is
  // lost.
  // protocol: 10.22
  void ask_for_rest(Vc& vc, GrantedBlock& block, Time now);
  // Requests the Blocks of `vc` that are stalled, if a check is due. Returns the number of Blocks
  // examined.
  // protocol: 10.3, 10.5
  std::size_t check(Vc& vc, Time now);

 private:
  Time ask_in_silence(Vc& vc, GrantedBlock* first, Time now);
  bool ask_again(Vc& vc, InboundBlock& block, Time now);
  static OptionPayload missing_of(const InboundBlock& block, const Tiles& tiles);
  void ask_whether_seen(Vc& vc, Time now);
  static Time timeout_in_silence(const Vc& vc);
  static Time idle_since(const Vc& vc, const InboundBlock& block);
  static Time stalled_at(const Vc& vc, const InboundBlock& block);
  static Time lost_at(const Vc& vc, const InboundBlock& block);

  Uses use_;
};

}  // namespace stp
