// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace stp::hostile {

// Thrown if this system or this user lacks what a move needs.
struct Cannot : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace stp::hostile
