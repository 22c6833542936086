// SPDX-License-Identifier: BSD-3-Clause
// Live rates: the changes from one sample to the next.
#pragma once

#include "tools/stpctl/options.h"

namespace stp::stpctl {

void top(const Options& options);

}  // namespace stp::stpctl
