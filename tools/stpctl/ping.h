// SPDX-License-Identifier: BSD-3-Clause
// stpctl ping: measures round trips to a peer, with only the public API of libst. The peer may be
// any program that listens: its Node answers Request_State. The program sees only a connection that
// opens and closes.
#pragma once

#include "tools/stpctl/options.h"

namespace stp::stpctl {

void ping(const Options& options);

}  // namespace stp::stpctl
