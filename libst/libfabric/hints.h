// SPDX-License-Identifier: BSD-3-Clause
// What a program asks for, against what there is.
#pragma once

#include <rdma/fabric.h>

#include <string>

namespace stp::fi {

// Empty: it can be had. Else why not.
[[nodiscard]] std::string why_not(std::uint32_t version, const fi_info* hints);

}  // namespace stp::fi
