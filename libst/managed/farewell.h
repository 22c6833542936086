// SPDX-License-Identifier: BSD-3-Clause
// Why a managed connection ends, where it is not in good order: told to the peer along with the
// request to disconnect (docs/protocol.md, 9.34).
#pragma once

#include <cstdint>

#include "libst/service/messages.h"

namespace stp::managed {

enum class Farewell : std::uint32_t {
  kNone = 0,
  kBroken = 1,     // the program has broken it off
  kNoReceive = 2,  // a message found no receive in time
};

service::WireOption to_option(Farewell farewell);
// The status that such an end has for the peer; 0: it is in good order.
int status_of_end(const service::WireOption& option);

}  // namespace stp::managed
