// SPDX-License-Identifier: BSD-3-Clause
// stpctl links, connections, regions, users and stats: queries each daemon once, and prints text or
// JSON.
#pragma once

#include "tools/stpctl/options.h"

namespace stp::stpctl {

void show(const Options& options);

}  // namespace stp::stpctl
