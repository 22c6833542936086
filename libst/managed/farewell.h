// SPDX-License-Identifier: BSD-3-Clause
// The reason for an end that is not graceful. The request to disconnect carries it to the peer
// (docs/protocol.md, 9.34).
#pragma once

#include <cstdint>

#include "libst/service/messages.h"

namespace stp::managed {

enum class Farewell : std::uint32_t {
  kNone = 0,
  kBroken = 1,     // the program has broken the connection off
  kNoReceive = 2,  // a message found no receive within the timeout
};

service::WireOption to_option(Farewell farewell);
// The status of the end as the peer's program sees it; 0: a graceful end.
int status_of_end(const service::WireOption& option);

}  // namespace stp::managed
