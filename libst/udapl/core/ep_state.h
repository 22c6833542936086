// SPDX-License-Identifier: BSD-3-Clause
// The states of an Endpoint.
//
//   Unconnected <--- unreserve ---.----------------------.
//    |     |  |                   |                      |
//    |     |  '---- reserve --> Reserved -- request --> PassivePending
//    |     | accept                                      |
//    |     '------------------------------.              | accept
//    | connect                            v              |
//    v                             CompletionPending <---'
//   ActivePending                         |
//    |                                    |
//    '---- establish ---> Connected <-----' establish
//
//   ActivePending, CompletionPending, Connected -- disconnect --> DisconnectPending
//   each of these four ---- end ----> Disconnected ---- reset ---> Unconnected
//
// Without effect: reset of an Unconnected one, disconnect of a DisconnectPending one, disconnect
// and end of a Disconnected one.
#pragma once

#include <cstdint>

#include "stp/base/state_machine.h"

namespace stp::udapl {

enum class EpState : std::uint8_t {
  kUnconnected,
  kReserved,
  kPassivePending,
  kActivePending,
  kCompletionPending,
  kConnected,
  kDisconnectPending,
  kDisconnected,
};

enum class EpInput : std::uint8_t {
  kReserve,     // an RSP is made with it
  kUnreserve,   // the RSP is freed, or its request rejected
  kRequest,     // a request came to its RSP
  kConnect,     // dat_ep_connect
  kAccept,      // dat_cr_accept
  kEstablish,   // both sides have said yes
  kDisconnect,  // dat_ep_disconnect
  kEnd,         // the connection is no more, or did not come about
  kReset,       // dat_ep_reset
};

inline constexpr Transition<EpState, EpInput> kEpTransitions[] = {
    {EpState::kUnconnected, EpInput::kReserve, EpState::kReserved},
    {EpState::kUnconnected, EpInput::kConnect, EpState::kActivePending},
    {EpState::kUnconnected, EpInput::kAccept, EpState::kCompletionPending},
    {EpState::kUnconnected, EpInput::kReset, EpState::kUnconnected},
    {EpState::kReserved, EpInput::kUnreserve, EpState::kUnconnected},
    {EpState::kReserved, EpInput::kRequest, EpState::kPassivePending},
    {EpState::kPassivePending, EpInput::kUnreserve, EpState::kUnconnected},
    {EpState::kPassivePending, EpInput::kAccept, EpState::kCompletionPending},
    {EpState::kActivePending, EpInput::kEstablish, EpState::kConnected},
    {EpState::kActivePending, EpInput::kDisconnect, EpState::kDisconnectPending},
    {EpState::kActivePending, EpInput::kEnd, EpState::kDisconnected},
    {EpState::kCompletionPending, EpInput::kEstablish, EpState::kConnected},
    {EpState::kCompletionPending, EpInput::kDisconnect, EpState::kDisconnectPending},
    {EpState::kCompletionPending, EpInput::kEnd, EpState::kDisconnected},
    {EpState::kConnected, EpInput::kDisconnect, EpState::kDisconnectPending},
    {EpState::kConnected, EpInput::kEnd, EpState::kDisconnected},
    {EpState::kDisconnectPending, EpInput::kDisconnect, EpState::kDisconnectPending},
    {EpState::kDisconnectPending, EpInput::kEnd, EpState::kDisconnected},
    {EpState::kDisconnected, EpInput::kDisconnect, EpState::kDisconnected},
    {EpState::kDisconnected, EpInput::kEnd, EpState::kDisconnected},
    {EpState::kDisconnected, EpInput::kReset, EpState::kUnconnected},
};

}  // namespace stp::udapl
