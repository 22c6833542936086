// SPDX-License-Identifier: BSD-3-Clause
// The states of Transfers in the managed layer, as tables to compare with docs/protocol.md.
//
// Outbound (this side sends):
//
//   Offered ---- RA -----> Seen
//      |  RTS, again         |
//      |                     |
//      +------ CTS ----------+----> Sending ---- RSR, all Blocks ----> Done
//      |                     |         |
//      +- RA Reject, silence +- END ---+- END, Reject, silence ------> Failed
//
// Inbound (this side receives):
//
//   Waiting --- a receive is posted ---> Granting --- last Block ----------> Done
//      |  RTS: RA                          |  |  CTS, per Block               |
//      |                                   |  |  cancelled, no progress: END  |
//      |                                   |  +-----> Ending --- last Block --+
//      |                                   |            |
//      +--------- END of the peer ---------+------------+- the END has left --> Failed
//
// The peer's DATA counts until our END has left: the Node confirms each Block that is complete by
// then.
#pragma once

#include <cstdint>

#include "stp/base/state_machine.h"

namespace stp {

enum class OutboundState : std::uint8_t { kOffered, kSeen, kSending, kDone, kFailed };
enum class OutboundEvent : std::uint8_t { kSeen, kRefused, kGranted, kComplete, kEnded, kSilence };

enum class InboundState : std::uint8_t { kWaiting, kGranting, kEnding, kDone, kFailed };
enum class InboundEvent : std::uint8_t { kMatched, kLastBlock, kEnded, kGivenUp, kVoided };

inline constexpr Transition<OutboundState, OutboundEvent> kOutboundTransitions[] = {
    {OutboundState::kOffered, OutboundEvent::kSeen, OutboundState::kSeen},
    {OutboundState::kOffered, OutboundEvent::kGranted, OutboundState::kSending},
    {OutboundState::kOffered, OutboundEvent::kRefused, OutboundState::kFailed},
    {OutboundState::kOffered, OutboundEvent::kEnded, OutboundState::kFailed},
    {OutboundState::kOffered, OutboundEvent::kSilence, OutboundState::kFailed},
    {OutboundState::kSeen, OutboundEvent::kSeen, OutboundState::kSeen},
    {OutboundState::kSeen, OutboundEvent::kGranted, OutboundState::kSending},
    {OutboundState::kSeen, OutboundEvent::kRefused, OutboundState::kFailed},
    {OutboundState::kSeen, OutboundEvent::kEnded, OutboundState::kFailed},
    {OutboundState::kSeen, OutboundEvent::kSilence, OutboundState::kFailed},
    {OutboundState::kSending, OutboundEvent::kSeen, OutboundState::kSending},
    {OutboundState::kSending, OutboundEvent::kGranted, OutboundState::kSending},
    {OutboundState::kSending, OutboundEvent::kComplete, OutboundState::kDone},
    {OutboundState::kSending, OutboundEvent::kEnded, OutboundState::kFailed},
    {OutboundState::kSending, OutboundEvent::kSilence, OutboundState::kFailed},
};

inline constexpr Transition<InboundState, InboundEvent> kInboundTransitions[] = {
    {InboundState::kWaiting, InboundEvent::kMatched, InboundState::kGranting},
    {InboundState::kWaiting, InboundEvent::kEnded, InboundState::kFailed},
    {InboundState::kGranting, InboundEvent::kLastBlock, InboundState::kDone},
    {InboundState::kGranting, InboundEvent::kEnded, InboundState::kFailed},
    {InboundState::kGranting, InboundEvent::kGivenUp, InboundState::kEnding},
    {InboundState::kEnding, InboundEvent::kLastBlock, InboundState::kDone},
    {InboundState::kEnding, InboundEvent::kEnded, InboundState::kFailed},
    {InboundState::kEnding, InboundEvent::kVoided, InboundState::kFailed},
};

}  // namespace stp
