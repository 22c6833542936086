// SPDX-License-Identifier: BSD-3-Clause
// Makes connections: those that a user of this Node requests, and those that a peer requests. Each
// gets a Port that no other has and none is promised, and the sizes that both sides can handle
// (docs/protocol.md, section 5).
#pragma once

#include "stp/node/connection/vc_endings.h"

namespace stp {

class Openings {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    PortTable& vcs;
    Pacing& pacing;
    Strangers& strangers;
    KnownPeers& peers;
    Dials& dials;
    VcEndings& endings;
    Turns& turns;
    WakeUps& wake_ups;
    VcTimers& timers;
  };
  explicit Openings(const Uses& uses) : use_(uses) {}

  // As Node::connect() and Node::open_port().
  int connect(Endpoint& endpoint, const MacAddr& peer, std::uint32_t uport, std::byte* channel,
              std::uint64_t cookie, VcId& out, Time now, const OptionPayload& option);
  int open_port(Endpoint& endpoint, std::byte* channel, std::uint64_t cookie, VcId& out, Time now);
  // Makes the connection that `asker` has requested, with a channel from the stock of `endpoint`,
  // which must not be empty, for the user to accept. `names`: those in an answer that has been
  // sent already. nullptr: no Port is left.
  Vc* make_passive(Endpoint& endpoint, const Requester& asker, const Strangers::Names& names,
                   Time now);
  // `vc` carries data from now on. `how`: the event that opens it.
  void open(Vc& vc, VcEvent how);
  // The CA for a connection made by an RC.
  [[nodiscard]] static wire::Header answer_of(const Vc& vc);

  // The CA of the peer.
  void on_answer(const wire::Frame& frame, Time now);

 private:
  // Announced by a peer in its RC or CA.
  struct PeerSizes {
    std::uint16_t slots;
    std::uint32_t bufsize, max_stu;  // exponents
  };
  std::uint16_t choose_port(const Endpoint& endpoint, Time now);
  Vc* make(Endpoint& endpoint, std::byte* channel, std::uint64_t cookie, Time now,
           const Strangers::Names& names = {});
  void adopt_peer(Vc& vc, const PeerName& name, const PeerSizes& sizes);

  Uses use_;
};

}  // namespace stp
