// SPDX-License-Identifier: BSD-3-Clause
// Names of states and directions, the same in stpctl and in telemetry.
#pragma once

#include <string_view>

#include "stp/node/node.h"

namespace stp::service {

constexpr std::string_view name_of(VcState state) {
  switch (state) {
    case VcState::kConnecting:
      return "connecting";
    case VcState::kOpen:
      return "open";
    case VcState::kClosing:
      return "closing";
    case VcState::kPeerClosing:
      return "peer-closing";
    case VcState::kBothClosing:
      return "both-closing";
    case VcState::kAsked:
      return "asked";
    case VcState::kPeerClosed:
      return "peer-closed";
    case VcState::kFailed:
      return "failed";
  }
  return "unknown";
}

constexpr std::string_view name_of(Direction direction) {
  return direction == Direction::kTransmit ? "tx" : "rx";
}

}  // namespace stp::service
