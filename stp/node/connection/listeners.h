// SPDX-License-Identifier: BSD-3-Clause
// Answers Request_Connections: at once, or by the decision of a user who inspects them first. A
// requester gets one connection however often it asks, and the same answer to each repeat
// (docs/protocol.md, section 5).
#pragma once

#include <map>

#include "stp/node/connection/newcomers.h"
#include "stp/node/connection/openings.h"
#include "stp/node/connection/refusals.h"

namespace stp {

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
  Vc* make_proven(const Requester& asker, const Strangers::Names& names, Time now);

  Uses use_;
  std::map<std::uint32_t, Endpoint*> listeners_;  // by UPort
  Refusals refusals_;
};

}  // namespace stp
