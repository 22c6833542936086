// SPDX-License-Identifier: BSD-3-Clause
// Thrown when a command fails: stderr gets the cause and the remedy, and the exit status is 1.
#pragma once

#include <stdexcept>

namespace stp::stpctl {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace stp::stpctl
