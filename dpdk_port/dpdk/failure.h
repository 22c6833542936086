// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace stp::port {

// Describes what a call of DPDK that returned `result` failed to do: in DPDK's words if it has said
// any since take_dpdk_message(), or in better ones where those do not help.
std::string failure(const std::string& what, int result);

}  // namespace stp::port
