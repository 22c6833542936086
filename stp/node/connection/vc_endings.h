// SPDX-License-Identifier: BSD-3-Clause
// How connections are dialled, and how they end: RD, DA and DC, failures, and connections that
// nobody needs any more. From the moment that a connection ends, its peer may write nothing and its
// queued requests are void. Its user is told when no frame reads the user's memory any more
// (docs/protocol.md, section 5).
#pragma once

#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "stp/node/common.h"
#include "stp/node/connection/known_peers.h"
#include "stp/node/connection/short_ways.h"
#include "stp/node/connection/strangers.h"
#include "stp/node/memory/mapped_memory.h"
#include "stp/node/objects.h"
#include "stp/node/pacing.h"
#include "stp/node/vc_timers.h"
#include "stp/node/wake_ups.h"
#include "stp/wire/padding.h"

namespace stp {

// Sends Request_Connections: to one listener not more at a time than it answers before any is
// accepted, and none is overtaken by younger ones for long. Where the way may be too short for what
// they promise, they find out what it carries.
// protocol: 5.33, 13.20
class Dials {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    const PortTable& vcs;
    NodeDepartures& departures;
    VcTimers& timers;
  };
  explicit Dials(const Uses& uses);

  // Sends the RC of `vc`, or lets it wait until others are answered.
  void begin(Vc& vc, Time now);
  // Sends it again.
  void repeat(const Vc& vc, Time now) { send(vc, now); }
  // The padded RC of `vc` with this I_Max_STU is answered: its datagrams arrive both ways.
  void reached(Vc& vc, unsigned max_stu, Time now);
  // It is answered, but the answer is padded for shorter STUs than it and the RC promise. True: so
  // have been others, to earlier repeats, so it is not by chance that the longer one is missing.
  static bool is_cut_again(Vc& vc);
  // The peer's Node has answered a question of this RC, or may have: what it has not got is sent.
  void is_there(Vc& vc, Time now);
  // Sends the RC of `vc` anew: with other names, for STUs that the way back carries.
  void begin_shorter(Vc& vc, unsigned max_stu, Time now);
  // It is answered or given up, if it has begun: sends the next one.
  void end(Vc& vc, Time now);

 private:
  using ListenerName = std::tuple<std::uint64_t, MacAddr, std::uint32_t>;  // owner, peer, UPort
  struct Dialing {
    std::set<VcId> sent, waiting;  // in the order of their creation
    Time hurried = 0;              // when the oldest of `sent` was repeated out of turn
  };
  static ListenerName listener_of(const Vc& vc);
  void start(Vc& vc, Time now);
  void hurry(Dialing& to, Time now);
  void send(const Vc& vc, Time now);
  void send(const Vc& vc, unsigned max_stu, wire::Padding padding);
  [[nodiscard]] static bool only_asks(const Vc& vc);
  void ask(const Vc& vc);

  Uses use_;
  const std::size_t most_;                   // unanswered at a time, of one user to one listener
  std::map<ListenerName, Dialing> dialing_;  // entries have unanswered RCs
  ShortWays short_ways_;
};

// Frees what ended connections, regions and Transfers have left, in slices: a little at once, the
// rest in later turns. So no call is long because something large has ended.
class Tidying {
 public:
  // `memory` and `pacing` have remains of their own. They must outlive this.
  Tidying(MappedMemory& memory, Pacing& pacing) : memory_(memory), pacing_(pacing) {}

  // All Transfers of a connection have ended and left `ended`.
  void later(InboundRemains ended);
  // Some Transfers of `vc` may have ended.
  void later(Vc& vc) {
    if (vc.inbound.untidy() && !vc.in<IsUntidy>()) vcs_.push_back(vc);
  }
  // Frees one slice.
  void turn();
  [[nodiscard]] bool untidy() const {
    return memory_.untidy() || pacing_.untidy() || !remains_.empty() || !vcs_.empty();
  }

 private:
  static constexpr std::size_t kAtOnce = 64, kInATurn = 1'024;

  MappedMemory& memory_;
  Pacing& pacing_;
  std::deque<InboundRemains> remains_;
  LinkedList<Vc, IsUntidy> vcs_;
};

class VcEndings {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    PortTable& vcs;
    Turns& turns;
    WakeUps& wake_ups;
    NodeDepartures& departures;
    VcTimers& timers;
    Pacing& pacing;
    MappedMemory& memory;
    Tidying& tidying;
    KnownPeers& peers;
    Strangers& strangers;
    Dials& dials;
  };
  explicit VcEndings(const Uses& uses) : use_(uses) {}

  // The user closes `vc`, which does not wait for its decision. As Node::close().
  void close(Vc& vc, bool at_once, Time now, const OptionPayload& option);
  // Sends the RD, if there is a peer to tell.
  void begin(Vc& vc, Time now);
  // Ends `vc` with an event that is legal in its state.
  // protocol: 5.25
  void fail(Vc& vc, VcEvent why, int error, Time now);
  // Before `vc` fails that waits for its user: to a repeated RC its requester is a new one.
  // protocol: 5.40
  void let_ask_again(Vc& vc, Time now);
  // Removes `vc`: no frame and no id finds it any more. `remember`: late RCs are to be recognised.
  void forget(Vc& vc, Time now, bool remember = true);
  // Counts the end of a connection that was open, once, however many steps the end takes.
  void count(Vc& vc, Counter how);
  // A frame of `vc` leaves. If its user has closed it, its queued requests make progress.
  static void progress(Vc& vc, Time now) {
    if (vc.draining.by_ != kNever) vc.draining.by_ = now + kDrainPatience;
  }
  // A frame of the ended connection `id` no longer reads its user's memory.
  void left_behind(VcId id, std::uint32_t frames);
  // Takes `vc` from the backlog of its listener. True: it was there.
  static bool leave_backlog(Vc& vc);

  // Frames of the peer.
  void on_request_disconnect(const wire::Frame& frame, Time now);
  void on_disconnect_answer(Vc& vc, Time now);
  void on_disconnect_complete(Vc& vc, Time now);
  // The timer of `vc` has run out: repeats its RC, RD or DA if that is due, or gives it up. False:
  // it has failed or is gone.
  bool repeat(Vc& vc, Time now);

 private:
  // A closing connection drops its queued requests if no frame of them leaves for this long.
  static constexpr Time kDrainPatience = 30 * kSecond;

  void drain(Vc& vc, Time now);
  void stop_traffic(Vc& vc);
  bool give_up(Vc& vc, Time now);
  void let_go(Vc& vc);
  void send(const Vc& vc, wire::Op op);
  void answer_unknown(const wire::Frame& frame, Time now);

  Uses use_;
};

}  // namespace stp
