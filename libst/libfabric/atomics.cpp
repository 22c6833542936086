// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/atomics.h"

namespace stp::fi {

std::optional<stm_fetch_op> fetch_op_of(fi_datatype type, fi_op op, bool compare) {
  if (type != FI_INT64 && type != FI_UINT64) return std::nullopt;
  if (compare) return op == FI_CSWAP ? std::optional(STM_COMPARE_AND_SWAP) : std::nullopt;
  // A read adds 0.
  if (op == FI_SUM || op == FI_ATOMIC_READ) return STM_FETCH_ADD;
  return std::nullopt;
}

int query_atomic(fi_datatype type, fi_op op, fi_atomic_attr* attr, std::uint64_t flags) {
  constexpr std::uint64_t kKinds = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
  if ((flags & ~kKinds) != 0 || (flags & kKinds) == kKinds) return -FI_EINVAL;
  const auto compare = (flags & FI_COMPARE_ATOMIC) != 0;
  if (op == FI_ATOMIC_READ && (flags & FI_FETCH_ATOMIC) == 0) return -FI_EOPNOTSUPP;
  if (!fetch_op_of(type, op, compare)) return -FI_EOPNOTSUPP;
  if (attr != nullptr) *attr = {.count = 1, .size = sizeof(std::uint64_t)};
  return 0;
}

}  // namespace stp::fi
