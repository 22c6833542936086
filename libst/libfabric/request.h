// SPDX-License-Identifier: BSD-3-Clause
// The arguments of a program's call that transfers bytes.
#pragma once

#include <cstdint>

#include "libst/libfabric/op.h"

namespace stp::fi {

// An internal flag of fi_inject and similar calls: they report nothing, not even an error.
inline constexpr std::uint64_t kUntold = std::uint64_t{1} << 63;

struct Request {
  Segments segments;
  void* context = nullptr;
  std::uint64_t flags = 0;  // FI_COMPLETION, FI_INJECT, FI_REMOTE_CQ_DATA, FI_FENCE, kUntold
  std::uint64_t data = 0;
};

struct Target {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

}  // namespace stp::fi
