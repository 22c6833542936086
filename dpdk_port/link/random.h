// SPDX-License-Identifier: BSD-3-Clause
// The random source for Nodes: they make Keys from it.
#pragma once

#include "stp/types.h"

namespace stp::port {

// The kernel's random source. Thread-safe.
Random& system_random();

}  // namespace stp::port
