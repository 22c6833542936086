// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/header.h"

#include "stp/wire/big_endian.h"
#include "stp/wire/syntax.h"

namespace stp::wire {

void encode(const Header& header, std::byte* wire) {
  store16(wire + at::kOpFlags, header.op_flags);
  store16(wire + at::kParam, header.param);
  store16(wire + at::kDPort, header.d_port);
  store16(wire + at::kSPort, header.s_port);
  store32(wire + at::kDKey, header.d_key);
  store16(wire + at::kCksum, header.cksum);
  store16(wire + at::kMx, header.mx);
  store32(wire + at::kBufx, header.bufx);
  store32(wire + at::kOffset, header.offset);
  store32(wire + at::kSync, header.sync);
  store32(wire + at::kBNum, header.b_num);
  store32(wire + at::kDId, header.d_id);
  store32(wire + at::kSId, header.s_id);
}

const char* short_name(Op op) {
  return syntax_of(op).name;
}

// protocol: 6.2
bool consumes_slot(const Header& header) {
  const bool silent_data = header.op() == Op::kData && header.has(flag::kSilent);
  return syntax_of(header.op()).slot && !silent_data;
}

}  // namespace stp::wire
