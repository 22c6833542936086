// SPDX-License-Identifier: BSD-3-Clause
// links, connections, regions and stats: queries each daemon once; text or JSON.
#pragma once

#include "tools/stpctl/options.h"

namespace stp::stpctl {

void show(const Options& options);

}  // namespace stp::stpctl
