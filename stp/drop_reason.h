// SPDX-License-Identifier: BSD-3-Clause
// Why a received frame is dropped. Each reason has a counter of the same name.
#pragma once

#include <cstdint>

#include "stp/counters.h"

namespace stp {

enum class DropReason : std::uint8_t {
#define STP_NO_REASON(id, name, text)
#define STP_REASON(id, name, text) k##id = static_cast<std::uint8_t>(Counter::k##id),
  STP_COUNTERS(STP_NO_REASON, STP_REASON)
#undef STP_REASON
#undef STP_NO_REASON
      kNone = 0xff,  // not dropped
};

// protocol: 12.1
constexpr Counter counter_of(DropReason reason) {
  return static_cast<Counter>(reason);
}

// "bad_port"; "none".
inline const char* name_of(DropReason reason) {
  return reason == DropReason::kNone ? "none" : Counters::name(counter_of(reason));
}

}  // namespace stp
