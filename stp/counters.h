// SPDX-License-Identifier: BSD-3-Clause
// What happened, counted by name (counter_table.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stp/counter_table.h"

namespace stp {

enum class Counter : std::uint8_t {
#define STP_COUNTER_ID(id, name, text) k##id,
  STP_COUNTERS(STP_COUNTER_ID, STP_COUNTER_ID)
#undef STP_COUNTER_ID
      kCount,
};
inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::kCount);

class Counters {
 public:
  void add(Counter c, std::uint64_t n = 1) { values_[static_cast<std::size_t>(c)] += n; }
  [[nodiscard]] std::uint64_t get(Counter c) const { return values_[static_cast<std::size_t>(c)]; }

  static const char* name(Counter c);         // "bad_port"
  static const char* description(Counter c);  // "D_Port names no connection or endpoint"
  // Whether this counter counts dropped frames.
  static bool is_drop(Counter c);

 private:
  std::array<std::uint64_t, kCounterCount> values_{};
};

}  // namespace stp
