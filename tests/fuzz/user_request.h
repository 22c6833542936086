// SPDX-License-Identifier: BSD-3-Clause
// Requests of a user who keeps to what is its own, but to no order: it grants, offers, answers and
// ends what it likes.
#pragma once

#include "tests/fuzz/byte_code.h"
#include "tests/fuzz/estate.h"

namespace stp::fuzz {

SendEntry user_request(ByteCode& code, const Estate& estate);

}  // namespace stp::fuzz
