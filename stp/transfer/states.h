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
//   Waiting --- a receive is posted ---> Granting --- last Block ---> Done
//      |  RTS: RA                           |  CTS, per Block
//      +--------------- END ----------------+- END, no progress ----> Failed
#pragma once

#include <cstdint>

#include "stp/base/state_machine.h"

namespace stp {

enum class OutboundState : std::uint8_t { kOffered, kSeen, kSending, kDone, kFailed };
enum class OutboundEvent : std::uint8_t { kSeen, kRefused, kGranted, kComplete, kEnded, kSilence };

enum class InboundState : std::uint8_t { kWaiting, kGranting, kDone, kFailed };
enum class InboundEvent : std::uint8_t { kMatched, kLastBlock, kEnded, kSilence };

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
    {InboundState::kGranting, InboundEvent::kSilence, InboundState::kFailed},
};

}  // namespace stp
