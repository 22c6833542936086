// SPDX-License-Identifier: BSD-3-Clause
// Listens for pings until Ctrl-C.
#pragma once

#include "tools/stpctl/options.h"

namespace stp::stpctl {

void serve_pings(const Options& options);

}  // namespace stp::stpctl
