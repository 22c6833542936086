// SPDX-License-Identifier: BSD-3-Clause
// How requests become connections: the answer, the requester's proof, and the making of the
// connection (section 5).
#pragma once

#include <map>

#include "stp/node/connection/known_peers.h"
#include "stp/node/connection/state_exchange.h"
#include "stp/node/connection/strangers.h"
#include "stp/node/connection/vc_endings.h"

namespace stp {

// Makes connections: those that a user of this Node requests, and those that a peer requests. Each
// gets a Port that no other has and none is promised, and the sizes that both sides can handle
// (docs/protocol.md, section 5).
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
    StateExchange& states;
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
  // The peer of `vc` is there: if the way to it is shared with others, `vc` yields to them.
  // protocol: 13.9
  void find_path(Vc& vc);
  // `vc` carries data from now on. `how`: the event that opens it.
  void open(Vc& vc, VcEvent how);
  // The peer of `vc`, which waited for that, has shown that it is there: `vc` may send.
  // protocol: 13.21
  void proven(Vc& vc);
  // The CA for a connection made by an RC. `padded`: it answers an RC with this I_Max_STU that was
  // padded; 0: one that was not.
  [[nodiscard]] static wire::Header answer_of(const Vc& vc, unsigned padded,
                                              const OptionPayload& option);

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
  std::uint32_t new_key();
  void adopt_peer(Vc& vc, const PeerName& name, const PeerSizes& sizes);
  void expect(Vc& vc) const;
  bool shows_way(Vc& vc, const wire::Frame& frame, Time now);
  void end_ghost(const wire::Frame& answer);

  Uses use_;
};

// Requesters that have not proved their address. A few of them get connections all the same; beyond
// that, nothing depends on the state kept for them, and those that prove themselves displace those
// that do not (docs/protocol.md, 5.34 to 5.42).
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
  void add(Vc& vc, Time now);
  // The user has admitted `vc`: from now on its peer can prove itself with the answer.
  void admitted(Vc& vc, Time now);
  // Frees a channel for proven requesters: that of the oldest connection that no user has accepted
  // and whose peer did not answer when asked. True: one will be in stock.
  // protocol: 5.40
  bool reclaim(Endpoint& endpoint, Time now);
  // If the user decides before any answer, a requester can show only that it keeps asking: such a
  // one displaces one that does not, or one of a network that has most of the places. False: the RC
  // has been dropped.
  // protocol: 5.40
  bool make_room_to_ask(Endpoint& endpoint, const Requester& asker, Time now);
  // Sends a CA, and an RS whose answer repeats what the RC said.
  // protocol: 5.35, 5.37
  void answer(const Endpoint& endpoint, const Requester& asker, Time now);
  // Sends a CA with Reject.
  // protocol: 5.6
  void refuse(const PeerName& to, std::uint32_t i_uport, std::uint32_t r_uport,
              const OptionPayload& option);
  // A response to a CA whose connection is not made, nor ever will be: tells its sender so.
  // protocol: 13.21
  void end_unknown(const wire::Frame& frame);

 private:
  bool may_answer(const Requester& asker, Time now);
  [[nodiscard]] bool is_proven(const Unproven::Entry& entry) const;
  void remove_proven();
  void look(Time now);
  [[nodiscard]] VcId giving_way(const Endpoint& endpoint, const MacAddr& network, Time now);
  void give_up(Vc& vc, Time now);

  Uses use_;
  Unproven unproven_;
};

// Answers Request_Connections: at once, or by the decision of a user who inspects them first. A
// requester gets one connection however often it asks, and the same answer to each repeat
// (docs/protocol.md, section 5).
class Listeners {
 public:
  // They must outlive this, and so must the endpoints that listen.
  struct Uses {
    Common& common;
    PortTable& vcs;
    Strangers& strangers;
    KnownPeers& peers;
    Newcomers& newcomers;
    Openings& openings;
    VcEndings& endings;
    VcTimers& timers;
    Turns& turns;
    WakeUps& wake_ups;
  };
  explicit Listeners(const Uses& uses) : use_(uses) {}
  ~Listeners();
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;

  // As Node::listen() and so on.
  int listen(Endpoint& endpoint, std::uint32_t uport);
  void unlisten(Endpoint& endpoint);
  static int accept(const Endpoint& endpoint, VcId& out);
  int admit(Vc& vc, const OptionPayload& option, Time now);
  int refuse(Vc& vc, const OptionPayload& option, Time now);

  void on_request(const wire::Frame& frame, Time now);
  // The Port that a frame names is unused, or the frame proves that its sender got our answer.
  // Returns the connection that is made for it and that has to receive the frame. nullptr: nothing
  // more is to be done.
  // protocol: 5.18, 5.35
  Vc* on_unknown_port(const wire::Frame& frame, Time now);
  // The timer of `vc` has run out. False: nobody decided on it in time, and it has ended.
  bool still_decides(Vc& vc, Time now);

 private:
  bool answer_again(const Requester& asker, Time now);
  void refuse_for(const Requester& asker, Counter why);
  void make(Endpoint& endpoint, const Requester& asker, bool own, Time now);
  void open(Vc& vc, VcEvent how);
  void ask_user(Vc& vc, Time now);
  void answer_refusal(const Vc& vc, const OptionPayload& option, Time now);
  [[nodiscard]] OptionPayload fitting(const OptionPayload& option, bool padded,
                                      const OptionPayload& of_request) const;
  Vc* make_proven(const Requester& asker, const Strangers::Names& names, Time now);

  Uses use_;
  std::map<std::uint32_t, Endpoint*> listeners_;  // by UPort
  Refusals refusals_;
};

}  // namespace stp
