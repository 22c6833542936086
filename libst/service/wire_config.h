// SPDX-License-Identifier: BSD-3-Clause
// Converts the engine's types to and from the fixed layouts of messages.
#pragma once

#include "libst/service/messages.h"

namespace stp::service {

// The longest connect_patience, in milliseconds: an hour.
inline constexpr std::uint32_t kLongestPatience = 3'600'000;

// Returns 0, or -EINVAL for values that no client library sends. The Node checks the rest.
int from_wire(const WireConfig& wire, EndpointConfig& out);
WireConfig to_wire(const EndpointConfig& config);

int from_wire(const WireOption& wire, OptionPayload& out);
WireOption to_wire(const OptionPayload& option);

}  // namespace stp::service
