// SPDX-License-Identifier: BSD-3-Clause
#include "stp/counters.h"

namespace stp {
namespace {

struct Row {
  const char* name;
  const char* description;
};

constexpr std::array<Row, kCounterCount> kRows = {{
#define STP_ROW(id, name, unit, text) {#name, text},
    STP_COUNTERS(STP_ROW, STP_ROW)
#undef STP_ROW
}};

}  // namespace

const char* Counters::name(Counter c) {
  return kRows[static_cast<std::size_t>(c)].name;
}

const char* Counters::description(Counter c) {
  return kRows[static_cast<std::size_t>(c)].description;
}

}  // namespace stp
