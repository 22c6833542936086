// SPDX-License-Identifier: BSD-3-Clause
// The lives of Transfers in the managed layer, as tables to hold against docs/protocol.md.
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

#include <cstddef>
#include <cstdint>

namespace stp {

enum class OutboundState : std::uint8_t { kOffered, kSeen, kSending, kDone, kFailed };
enum class OutboundEvent : std::uint8_t { kSeen, kRefused, kGranted, kComplete, kEnded, kSilence };

enum class InboundState : std::uint8_t { kWaiting, kGranting, kDone, kFailed };
enum class InboundEvent : std::uint8_t { kMatched, kLastBlock, kEnded, kSilence };

template <typename State, typename Event>
struct Transition {
  State from;
  Event event;
  State to;
};

using OutboundTransition = Transition<OutboundState, OutboundEvent>;
using InboundTransition = Transition<InboundState, InboundEvent>;

inline constexpr OutboundTransition kOutboundTransitions[] = {
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

inline constexpr InboundTransition kInboundTransitions[] = {
    {InboundState::kWaiting, InboundEvent::kMatched, InboundState::kGranting},
    {InboundState::kWaiting, InboundEvent::kEnded, InboundState::kFailed},
    {InboundState::kGranting, InboundEvent::kLastBlock, InboundState::kDone},
    {InboundState::kGranting, InboundEvent::kEnded, InboundState::kFailed},
    {InboundState::kGranting, InboundEvent::kSilence, InboundState::kFailed},
};

// Advances `state`; false: not legal there, nothing changes.
template <typename State, typename Event, std::size_t N>
constexpr bool advance(const Transition<State, Event> (&table)[N], State& state, Event event) {
  for (auto const& t : table) {
    if (t.from != state || t.event != event) continue;
    state = t.to;
    return true;
  }
  return false;
}

}  // namespace stp
