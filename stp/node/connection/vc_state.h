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
//
// Every Vc begins in Connecting. One that came by RC, or is the Port of a connectionless endpoint,
// leaves it before anybody else sees it.
#pragma once

#include <cstdint>

#include "stp/base/state_machine.h"
#include "stp/node/node.h"

namespace stp {

enum class VcEvent : std::uint8_t {
  kBegun,      // an RC made it; or it is the Port of a connectionless endpoint
  kShown,      // an RC made it at an inspecting listener: the user decides
  kAnswer,     // CA
  kAdmit,      // the user accepts it
  kRefusal,    // CA with Reject
  kClose,      // the user closed it and all it queued has been sent
  kRequest,    // RD
  kConfirmed,  // DA
  kComplete,   // DC
  kGaveUp,     // tries used up, or keep-alive unanswered
};

inline constexpr auto kVcGone = static_cast<VcState>(0xff);  // to be destroyed

// Any event not listed is illegal in that state: the frame is dropped and counted (bad_state).
// protocol: 5.2, 5.15
inline constexpr Transition<VcState, VcEvent> kVcTransitions[] = {
    {VcState::kConnecting, VcEvent::kBegun, VcState::kOpen},
    {VcState::kConnecting, VcEvent::kShown, VcState::kAsked},
    {VcState::kConnecting, VcEvent::kAnswer, VcState::kOpen},
    {VcState::kConnecting, VcEvent::kRefusal, VcState::kFailed},
    {VcState::kConnecting, VcEvent::kGaveUp, VcState::kFailed},
    {VcState::kConnecting, VcEvent::kRequest, VcState::kPeerClosing},
    {VcState::kConnecting, VcEvent::kClose, kVcGone},
    {VcState::kAsked, VcEvent::kAdmit, VcState::kOpen},
    {VcState::kAsked, VcEvent::kGaveUp, VcState::kFailed},
    {VcState::kAsked, VcEvent::kClose, kVcGone},
    {VcState::kOpen, VcEvent::kClose, VcState::kClosing},
    {VcState::kOpen, VcEvent::kRequest, VcState::kPeerClosing},
    {VcState::kOpen, VcEvent::kGaveUp, VcState::kFailed},
    {VcState::kClosing, VcEvent::kConfirmed, kVcGone},
    {VcState::kClosing, VcEvent::kRequest, VcState::kBothClosing},
    {VcState::kClosing, VcEvent::kGaveUp, kVcGone},
    {VcState::kBothClosing, VcEvent::kConfirmed, VcState::kPeerClosing},
    {VcState::kBothClosing, VcEvent::kComplete, VcState::kClosing},
    {VcState::kBothClosing, VcEvent::kRequest, VcState::kBothClosing},
    {VcState::kBothClosing, VcEvent::kGaveUp, kVcGone},
    {VcState::kPeerClosing, VcEvent::kRequest, VcState::kPeerClosing},
    {VcState::kPeerClosing, VcEvent::kComplete, VcState::kPeerClosed},
    {VcState::kPeerClosing, VcEvent::kGaveUp, VcState::kPeerClosed},
    {VcState::kPeerClosed, VcEvent::kRequest, VcState::kPeerClosed},
    {VcState::kPeerClosed, VcEvent::kClose, kVcGone},
    {VcState::kFailed, VcEvent::kRequest, VcState::kFailed},
    {VcState::kFailed, VcEvent::kClose, kVcGone},
};

}  // namespace stp
