// SPDX-License-Identifier: BSD-3-Clause
// What the engine takes and gives, to and from the fixed forms that messages carry.
#pragma once

#include "libst/service/messages.h"

namespace stp::service {

// Of connect_patience, in milliseconds: an hour.
inline constexpr std::uint32_t kLongestPatience = 3'600'000;

// 0, or -EINVAL for what no client library sends. What else is senseless the Node finds.
int from_wire(const WireConfig& wire, EndpointConfig& out);
WireConfig to_wire(const EndpointConfig& config);

int from_wire(const WireOption& wire, OptionPayload& out);
WireOption to_wire(const OptionPayload& option);

}  // namespace stp::service
