// SPDX-License-Identifier: BSD-3-Clause
// The life of a Virtual Connection (docs/protocol.md, section 5).
//
//   connect()                                      listener gets RC
//       |  send RC                                     |  send CA
//       v                                              v
//   Connecting --- CA ---------------------------->  Open
//       |                                            |    |
//       | CA Reject, tries used up     close(): RD   |    |  RD arrives: send DA
//       v                                            v    v
//     Failed <--- peer silent (from Open)       Closing  PeerClosing -- DC, or tries --> PeerClosed
//                                                  |  \      ^  used up                      |
//                             DA: send DC, or      |   RD    | DA: send DC                   |
//                             tries used up        |    v    |                               |
//                                                  v   BothClosing                   close() |
//                                                Gone <---------------------------------------
//
// A listener that inspects: RC -> Asked; the user accepts: CA, Open; refuses: CA Reject, Gone; does
// not decide in time: CA Reject, Failed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "stp/node/node.h"

namespace stp {

enum class VcEvent : std::uint8_t {
  kAnswer,     // CA
  kAdmit,      // the user accepts what was asked for
  kRefusal,    // CA with Reject
  kClose,      // the user closes, and all it queued has been sent
  kRequest,    // RD
  kConfirmed,  // DA
  kComplete,   // DC
  kGaveUp,     // tries used up, or keep-alive unanswered
};

inline constexpr auto kVcGone = static_cast<VcState>(0xff);  // to be forgotten

struct VcTransition {
  VcState from;
  VcEvent event;
  VcState to;
};

// What is not listed is not legal in that state: the frame is dropped and counted (bad_state).
// protocol: 5.2, 5.15
inline constexpr std::array kVcTransitions{
    VcTransition{VcState::kConnecting, VcEvent::kAnswer, VcState::kOpen},
    VcTransition{VcState::kConnecting, VcEvent::kRefusal, VcState::kFailed},
    VcTransition{VcState::kConnecting, VcEvent::kGaveUp, VcState::kFailed},
    VcTransition{VcState::kConnecting, VcEvent::kRequest, VcState::kPeerClosing},
    VcTransition{VcState::kConnecting, VcEvent::kClose, kVcGone},
    VcTransition{VcState::kAsked, VcEvent::kAdmit, VcState::kOpen},
    VcTransition{VcState::kAsked, VcEvent::kGaveUp, VcState::kFailed},
    VcTransition{VcState::kAsked, VcEvent::kClose, kVcGone},
    VcTransition{VcState::kOpen, VcEvent::kClose, VcState::kClosing},
    VcTransition{VcState::kOpen, VcEvent::kRequest, VcState::kPeerClosing},
    VcTransition{VcState::kOpen, VcEvent::kGaveUp, VcState::kFailed},
    VcTransition{VcState::kClosing, VcEvent::kConfirmed, kVcGone},
    VcTransition{VcState::kClosing, VcEvent::kRequest, VcState::kBothClosing},
    VcTransition{VcState::kClosing, VcEvent::kGaveUp, kVcGone},
    VcTransition{VcState::kBothClosing, VcEvent::kConfirmed, VcState::kPeerClosing},
    VcTransition{VcState::kBothClosing, VcEvent::kComplete, VcState::kClosing},
    VcTransition{VcState::kBothClosing, VcEvent::kRequest, VcState::kBothClosing},
    VcTransition{VcState::kBothClosing, VcEvent::kGaveUp, kVcGone},
    VcTransition{VcState::kPeerClosing, VcEvent::kRequest, VcState::kPeerClosing},
    VcTransition{VcState::kPeerClosing, VcEvent::kComplete, VcState::kPeerClosed},
    VcTransition{VcState::kPeerClosing, VcEvent::kGaveUp, VcState::kPeerClosed},
    VcTransition{VcState::kPeerClosed, VcEvent::kRequest, VcState::kPeerClosed},
    VcTransition{VcState::kPeerClosed, VcEvent::kClose, kVcGone},
    VcTransition{VcState::kFailed, VcEvent::kRequest, VcState::kFailed},
    VcTransition{VcState::kFailed, VcEvent::kClose, kVcGone},
};

constexpr std::optional<VcState> vc_next(VcState state, VcEvent event) {
  for (auto const& t : kVcTransitions)
    if (t.from == state && t.event == event) return t.to;
  return std::nullopt;
}

}  // namespace stp
