// SPDX-License-Identifier: BSD-3-Clause
// The random numbers that a Node is given: Keys are made of them.
#pragma once

#include "stp/types.h"

namespace stp::port {

// The kernel's random source. Any thread may use it.
Random& system_random();

}  // namespace stp::port
