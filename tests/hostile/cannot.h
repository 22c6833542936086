// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace stp::hostile {

// This system, or this user, does not have what a move needs.
struct Cannot : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace stp::hostile
