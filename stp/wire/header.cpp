// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/header.h"

#include "stp/wire/syntax.h"

namespace stp::wire {

const char* short_name(Op op) {
  return operation(op).short_name;
}

// protocol: 6.2
bool consumes_slot(const Header& header) {
  const bool silent_data = header.op() == Op::kData && header.has(flag::kSilent);
  return syntax_of(header.op()).slot && !silent_data;
}

}  // namespace stp::wire
