// SPDX-License-Identifier: BSD-3-Clause
// The life of a managed connection (docs/managed.md).
//
//   Idle ----- connect ---> Connecting --- opened ---> Asking ----- agreed ----.
//    |                                                                          |
//    | expect                                                                   |
//    v                                                                          v
//   Expected - request ---> Requested ---- accept ---> Accepting -- agreed ---> Up
//                               |                                               |
//                               | reject                                        | disconnect
//                               v                                               v
//                           Rejecting                  Closing <-- drained -- Draining
//
//   Each of these ---- over ----> Ending ---- let go ----> Ended
#pragma once

#include <cstdint>

#include "stp/base/state_machine.h"

namespace stp::managed {

enum class ConnectionState : std::uint8_t {
  kIdle,        // created
  kConnecting,  // RC sent
  kAsking,      // request sent, waits for the answer
  kExpected,    // taken from a listener, waits for the request
  kRequested,   // waits for the program's decision
  kAccepting,   // accepted, the answer is being sent
  kRejecting,
  kUp,
  kDraining,  // disconnects when all posted operations are complete
  kClosing,   // disconnects
  kEnding,    // over; remaining completions are reported when that is allowed
  kEnded,
};

enum class ConnectionEvent : std::uint8_t {
  kConnect,     // the program connects it
  kExpect,      // a listener has taken it from its backlog
  kOpened,      // the Virtual Connection is open
  kRequest,     // the peer's request has come
  kAccept,      // the program accepts the request
  kReject,      // the program, or its listener's end, rejects the request
  kAgreed,      // the peer has accepted; or the peer knows that it was accepted
  kDisconnect,  // the program disconnects gracefully
  kDrained,     // all posted operations are complete
  kOver,        // any end: by either program, the link, or a timeout
  kLetGo,       // no frame uses its memory any more
};

inline constexpr Transition<ConnectionState, ConnectionEvent> kConnectionTransitions[] = {
    {ConnectionState::kIdle, ConnectionEvent::kConnect, ConnectionState::kConnecting},
    {ConnectionState::kIdle, ConnectionEvent::kExpect, ConnectionState::kExpected},
    {ConnectionState::kIdle, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kConnecting, ConnectionEvent::kOpened, ConnectionState::kAsking},
    {ConnectionState::kConnecting, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kAsking, ConnectionEvent::kAgreed, ConnectionState::kUp},
    {ConnectionState::kAsking, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kExpected, ConnectionEvent::kRequest, ConnectionState::kRequested},
    {ConnectionState::kExpected, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kRequested, ConnectionEvent::kAccept, ConnectionState::kAccepting},
    {ConnectionState::kRequested, ConnectionEvent::kReject, ConnectionState::kRejecting},
    {ConnectionState::kRequested, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kAccepting, ConnectionEvent::kAgreed, ConnectionState::kUp},
    {ConnectionState::kAccepting, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kRejecting, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kUp, ConnectionEvent::kDisconnect, ConnectionState::kDraining},
    {ConnectionState::kUp, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kDraining, ConnectionEvent::kDrained, ConnectionState::kClosing},
    {ConnectionState::kDraining, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kClosing, ConnectionEvent::kOver, ConnectionState::kEnding},
    {ConnectionState::kEnding, ConnectionEvent::kLetGo, ConnectionState::kEnded},
};

}  // namespace stp::managed
