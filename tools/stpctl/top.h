// SPDX-License-Identifier: BSD-3-Clause
// stpctl top: prints live rates, from the changes of the counters from one sample to the next.
#pragma once

#include "tools/stpctl/options.h"

namespace stp::stpctl {

void top(const Options& options);

}  // namespace stp::stpctl
