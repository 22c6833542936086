// SPDX-License-Identifier: BSD-3-Clause
// The clock of this whole program: the system's, advanced by let_pass().
#pragma once

#include "stp/types.h"

namespace stp::test {

void let_pass(Time time);

}  // namespace stp::test
