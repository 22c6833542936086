// SPDX-License-Identifier: BSD-3-Clause
// The clock of all that this program consists of: the system's, and as much later as it is told.
#pragma once

#include "stp/types.h"

namespace stp::test {

void let_pass(Time time);

}  // namespace stp::test
