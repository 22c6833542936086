// SPDX-License-Identifier: BSD-3-Clause
// Requests of a user that uses only its own objects, but in any order: it grants, offers, answers
// and ends at random.
#pragma once

#include "tests/fuzz/byte_code.h"
#include "tests/fuzz/estate.h"

namespace stp::fuzz {

SendEntry user_request(ByteCode& code, const Estate& estate);

}  // namespace stp::fuzz
