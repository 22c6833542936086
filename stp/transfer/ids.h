// SPDX-License-Identifier: BSD-3-Clause
// Names what this side begins: owns the ids of its Transfers, regions and requests. They count up,
// so that no id is reused while a duplicate of an old frame may exist.
#pragma once

#include <cstdint>

#include "stp/wire/header.h"

namespace stp {

// protocol: 8.13, 9.1
class Ids {
 public:
  // Never 0 nor kNoId.
  std::uint32_t next() {
    const auto id = next_++;
    if (next_ == wire::kNoId) next_ = 1;
    return id;
  }

 private:
  std::uint32_t next_ = 1;
};

}  // namespace stp
