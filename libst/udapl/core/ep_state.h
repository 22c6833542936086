// SPDX-License-Identifier: BSD-3-Clause
// The states of an Endpoint, as a table.
#pragma once

#include <cstdint>
#include <optional>

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
inline constexpr std::size_t kEpStates = 8;

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
inline constexpr std::size_t kEpInputs = 9;

// None: the input is not legal in this state.
std::optional<EpState> next_state(EpState state, EpInput input);

}  // namespace stp::udapl
