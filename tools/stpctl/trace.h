// SPDX-License-Identifier: BSD-3-Clause
// stpctl trace: controls traces that the daemon makes, into a file that this program opens.
#pragma once

#include "tools/stpctl/options.h"

namespace stp::stpctl {

void trace(const Options& options);

}  // namespace stp::stpctl
