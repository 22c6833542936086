// SPDX-License-Identifier: BSD-3-Clause
// Traces made inside the daemon, into a file that this program opens.
#pragma once

#include "tools/stpctl/options.h"

namespace stp::stpctl {

void trace(const Options& options);

}  // namespace stp::stpctl
