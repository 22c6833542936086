// SPDX-License-Identifier: BSD-3-Clause
#include "stp/counters.h"

namespace stp {
namespace {

struct Row {
  const char* name;
  const char* description;
  bool is_drop;
};

constexpr std::array<Row, kCounterCount> kRows = {{
#define STP_COUNTER_ROW(id, name, text) {#name, text, false},
#define STP_DROP_ROW(id, name, text) {#name, text, true},
    STP_COUNTERS(STP_COUNTER_ROW, STP_DROP_ROW)
#undef STP_DROP_ROW
#undef STP_COUNTER_ROW
}};

}  // namespace

const char* Counters::name(Counter c) {
  return kRows[static_cast<std::size_t>(c)].name;
}

const char* Counters::description(Counter c) {
  return kRows[static_cast<std::size_t>(c)].description;
}

bool Counters::is_drop(Counter c) {
  return kRows[static_cast<std::size_t>(c)].is_drop;
}

}  // namespace stp
