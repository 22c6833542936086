// SPDX-License-Identifier: BSD-3-Clause
// stpctl dat-conf: prints lines for /etc/dat.conf, which the registry of DAT reads.
#pragma once

#include "tools/stpctl/options.h"

namespace stp::stpctl {

void dat_conf(const Options& options);

}  // namespace stp::stpctl
