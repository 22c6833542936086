// SPDX-License-Identifier: BSD-3-Clause
// Requesters that have not proved their address. A few of them get connections all the same; beyond
// that, nothing depends on the state kept for them, and those that prove themselves displace those
// that do not (docs/protocol.md, 5.34 to 5.42).
#pragma once

#include "stp/node/connection/state_exchange.h"
#include "stp/node/connection/strangers.h"
#include "stp/node/connection/unproven.h"
#include "stp/node/connection/vc_endings.h"

namespace stp {

class Newcomers {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    PortTable& vcs;
    Strangers& strangers;
    VcEndings& endings;
    StateExchange& states;
  };
  explicit Newcomers(const Uses& uses) : use_(uses) {}

  // Whether one more requester at `from` gets a connection only after it has proved its address.
  // protocol: 5.34
  bool must_prove(const Endpoint& endpoint, const MacAddr& from, Time now);
  // `vc` was made for such a requester.
  void add(const Vc& vc, Time now);
  // The user has admitted `vc`: from now on its peer can prove itself with the answer.
  void admitted(const Vc& vc, Time now);
  // Frees a channel for proven requesters: that of the oldest connection that no user has accepted
  // and whose peer did not answer when asked. True: one will be in stock.
  // protocol: 5.40
  bool reclaim(Endpoint& endpoint, Time now);
  // If the user decides before any answer, a requester can show only that it keeps asking: such a
  // one displaces one that does not. False: the RC has been dropped.
  // protocol: 5.40
  bool make_room_to_ask(Endpoint& endpoint, const PeerName& peer, Time now);
  // Sends a CA, and an RS whose answer repeats what the RC said.
  // protocol: 5.35, 5.37
  void answer(const Endpoint& endpoint, const Requester& asker, Time now);
  // Sends a CA with Reject.
  // protocol: 5.6
  void refuse(const PeerName& to, std::uint32_t i_uport, std::uint32_t r_uport,
              const OptionPayload& option);

 private:
  [[nodiscard]] bool is_proven(const Unproven::Entry& entry) const;
  void remove_proven();
  void look(Time now);
  void give_up(Vc& vc, Time now);

  Uses use_;
  Unproven unproven_;
};

}  // namespace stp
