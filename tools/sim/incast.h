// SPDX-License-Identifier: BSD-3-Clause
// Many senders, one receiver, and a switch port between them that has not room for all.
#pragma once

#include "stp/types.h"

namespace stp::sim {

struct IncastResult {
  bool passed = false;
  std::uint64_t drops = 0;  // frames that found no room in the switch
  double line_rate = 0;     // what users got of the receiver's bit rate: 0..1
  double worst_finish = 0;  // the last to finish, as a multiple of the time it must take
};

// 1 MiB each, at 100 Gbit/s and 2 us per hop, 256 KiB of buffer at the port.
// `granted_limit` as in NodeConfig; 0: no pacing.
IncastResult play_incast(unsigned senders, std::uint64_t granted_limit);

// What fits the link: more than its round trip holds, less than the port has room for.
std::uint64_t incast_limit();

}  // namespace stp::sim
