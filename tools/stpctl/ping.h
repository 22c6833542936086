// SPDX-License-Identifier: BSD-3-Clause
// Round trips to a peer, on libst's public API alone. The peer may be any program that listens:
// its Node answers a Request_State, and the program sees nothing but a connection that comes and
// goes.
#pragma once

#include "tools/stpctl/options.h"

namespace stp::stpctl {

void ping(const Options& options);

}  // namespace stp::stpctl
