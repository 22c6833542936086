// SPDX-License-Identifier: BSD-3-Clause
// The clock for Nodes.
#pragma once

#include "stp/types.h"

namespace stp::port {

// Nanoseconds of the system's monotonic clock.
Time now();

}  // namespace stp::port
