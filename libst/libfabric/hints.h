// SPDX-License-Identifier: BSD-3-Clause
// Compares a program's hints with what the provider offers.
#pragma once

#include <rdma/fabric.h>

#include <string>

namespace stp::fi {

// Returns the reason why the hints cannot be met; empty: they can.
[[nodiscard]] std::string why_not(std::uint32_t version, const fi_info* hints);

}  // namespace stp::fi
