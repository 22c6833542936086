// SPDX-License-Identifier: BSD-3-Clause
// Which atomic operations a FetchOp carries: on one 64-bit number in the peer's byte order.
#pragma once

#include <rdma/fi_atomic.h>

#include <cstdint>
#include <optional>

#include "libst/include/stp/managed.h"

namespace stp::fi {

// For fetch (fi_fetch_atomic) and compare operations; operations without a result map to the same.
[[nodiscard]] std::optional<stm_fetch_op> fetch_op_of(fi_datatype type, fi_op op, bool compare);

int query_atomic(fi_datatype type, fi_op op, fi_atomic_attr* attr, std::uint64_t flags);

}  // namespace stp::fi
