// SPDX-License-Identifier: BSD-3-Clause
// The request that a connection is sending, and its progress.
#pragma once

#include <cstdint>

#include "stp/channel/layout.h"

namespace stp {

struct Sending {
  bool active = false;  // a DATA of several STUs is partly sent
  SendEntry entry;
  enum class Source : std::uint8_t { kUser, kRegion, kValue };
  Source source = Source::kUser;  // the user's transmit buffers; an answer's region; `payload`
  std::uint64_t done = 0;         // bytes
  std::uint32_t stu_num = 0;      // of the next STU

  [[nodiscard]] bool appends() const {
    return source == Source::kUser && entry.payload_length == wire::kAppendSize;
  }
};

}  // namespace stp
