// SPDX-License-Identifier: BSD-3-Clause
// Which queues of a link a shard uses. A queue has one sender and one receiver, so shards share
// none. Both ends of a link follow the same rule, whatever the number of their shards:
//
//   Of Q queues to the peer, shard i of N fills Q/N, the first of which is i * (Q/N); a frame goes
//   into the one that its D_Port modulo Q/N names. Shard i empties the queues i, i + N, i + 2N, ...
//
// If one end has N shards and the other one M, and there are N * M queues each way, each frame
// arrives at the shard that its D_Port names. If there are fewer, the shard that receives a frame
// hands it over. With fewer queues than shards, those without one send through another shard.
#pragma once

#include <cstdint>

#include "stp/node/shards.h"

namespace stp::port {

// What one shard fills.
struct QueuesToSend {
  unsigned first = 0;
  unsigned count = 0;  // 0: none

  [[nodiscard]] unsigned at(std::uint16_t d_port) const { return first + d_port % count; }
};

constexpr QueuesToSend queues_to_send(unsigned queues, const PortShare& of) {
  if (of.count == 1) return {0, queues};
  if (queues < of.count) return {of.index, of.index < queues ? 1U : 0U};
  const unsigned each = queues / of.count;
  return {of.index * each, each};
}

}  // namespace stp::port
