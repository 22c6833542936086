// SPDX-License-Identifier: BSD-3-Clause
// The life of a managed connection, and that of a region of its peer's (docs/managed.md).
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
//
// A region of the peer's:
//
//   Asked --- opened ---> Open --- revoked ---> Closed
//     '----- refused ----------------------------^
#pragma once

#include <cstdint>

#include "stp/base/state_machine.h"

namespace stp::managed {

enum class ConnectionState : std::uint8_t {
  kIdle,        // created
  kConnecting,  // RC sent
  kAsking,      // request sent, its answer awaited
  kExpected,    // came from a listener: its request is awaited
  kRequested,   // the program decides
  kAccepting,   // accepted: the answer is on its way
  kRejecting,
  kUp,
  kDraining,  // disconnects once all is done
  kClosing,   // disconnects
  kEnding,    // is over: what is left is told once it may be
  kEnded,
};

enum class ConnectionEvent : std::uint8_t {
  kConnect,     // the program connects it
  kExpect,      // a listener has taken it from its backlog
  kOpened,      // the Virtual Connection is open
  kRequest,     // the peer's request has come
  kAccept,      // the program accepts the request
  kReject,      // the program, or its listener's end, rejects the request
  kAgreed,      // the peer has accepted; or it knows that it was accepted
  kDisconnect,  // the program disconnects in order
  kDrained,     // all that was posted is done
  kOver,        // whatever ends it: either program, the link, time
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

enum class RemoteState : std::uint8_t { kAsked, kOpen, kClosed };

enum class RemoteEvent : std::uint8_t {
  kOpened,   // the peer serves it
  kRefused,  // the peer does not, or it was not even asked
  kRevoked,  // the peer has taken it back
};

inline constexpr Transition<RemoteState, RemoteEvent> kRemoteTransitions[] = {
    {RemoteState::kAsked, RemoteEvent::kOpened, RemoteState::kOpen},
    {RemoteState::kAsked, RemoteEvent::kRefused, RemoteState::kClosed},
    {RemoteState::kOpen, RemoteEvent::kRevoked, RemoteState::kClosed},
};

}  // namespace stp::managed
