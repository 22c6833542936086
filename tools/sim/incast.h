// SPDX-License-Identifier: BSD-3-Clause
// Incast: many senders, one receiver, and a switch port between them whose buffer is too small for
// all of them.
#pragma once

#include "stp/types.h"

namespace stp::sim {

struct IncastResult {
  bool passed = false;
  std::uint64_t drops = 0;  // frames that found no room in the switch
  double line_rate = 0;     // users' share of the receiver's bit rate: 0..1
  double worst_finish = 0;  // finish of the last sender, as a multiple of the least possible time
};

// 1 MiB each, at 100 Gbit/s and 2 us per hop, 256 KiB of buffer at the port.
// `granted_limit` as in NodeConfig; 0: no pacing.
IncastResult play_incast(unsigned senders, std::uint64_t granted_limit);

// A limit that suits the link: more than its bandwidth-delay product, less than the port's buffer.
std::uint64_t incast_limit();

}  // namespace stp::sim
