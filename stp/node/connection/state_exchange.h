// SPDX-License-Identifier: BSD-3-Clause
// Slots and states: asks peers (RS) how many Slots are free there and whether they are alive, and
// answers such questions (RSR). Nothing that needs a Slot leaves without one (docs/protocol.md,
// section 6).
#pragma once

#include "stp/node/common.h"
#include "stp/node/objects.h"
#include "stp/node/pacing.h"
#include "stp/node/send_bounds.h"
#include "stp/node/vc_timers.h"
#include "stp/node/wake_ups.h"

namespace stp {

class StateExchange {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    Pacing& pacing;
    SendBounds& bounds;
    Turns& turns;
    NodeDepartures& departures;
    VcTimers& timers;
    WakeUps& wake_ups;
  };
  explicit StateExchange(const Uses& uses) : use_(uses) {}

  // RS and RSR of the peer.
  void on_request(Vc& vc, const wire::Header& header);
  void on_response(Vc& vc, const wire::Frame& frame, Time now);
  // The answer that a Send_State flag asks for: RSR with the free Slots and, if `r_id` names a
  // Transfer, its state.
  void answer(Vc& vc, std::uint32_t sync, std::uint32_t b_num, std::uint32_t r_id,
              std::uint32_t asker_id = 0);

  // Whether an operation that needs a Slot may go. If not, asks the peer; the answer makes the
  // connection ready again.
  bool has_credit(Vc& vc, Time now);
  // Such an operation goes.
  void spend(Vc& vc, Time now) {
    vc.credit.spend();
    if (vc.credit.should_ask() && !vc.questions.postponed()) ask(vc, Ask::kState, now);
  }
  // Reasons to send an RS: to learn the credit, or whether the peer has seen what it was sent; to
  // check that it is alive.
  enum class Ask : std::uint8_t { kState, kKeepAlive };
  // Sends an RS, unless one is open.
  void ask(Vc& vc, Ask why, Time now);

  // The RC of `vc` has been answered: shows the peer that this station is there, and asks it for an
  // RSR. Repeats both until the peer is heard.
  // protocol: 13.21
  void prove(Vc& vc, Time now);

  // The timer of `vc`, which is open, has run out: repeats what is unanswered. False: the peer is
  // gone.
  bool repeat(Vc& vc, Time now);
  // Asks what is due: about Slots after a pause, and whether a silent peer is alive.
  void ask_when_due(Vc& vc, Time now);

 private:
  void begin_proof(Vc& vc, std::uint32_t r_id, std::uint32_t i_id, Time interval);
  void repeat_proof(Vc& vc);
  void send_question(Vc& vc);
  void ask_later(Vc& vc, Time now);

  Uses use_;
};

}  // namespace stp
