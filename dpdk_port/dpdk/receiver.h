// SPDX-License-Identifier: BSD-3-Clause
// The receiving half of a shard's queues.
#pragma once

#include "dpdk_port/dpdk/device.h"
#include "dpdk_port/link/arp.h"
#include "dpdk_port/link/crossing.h"
#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/frame_buffers.h"
#include "dpdk_port/port.h"

namespace stp::port {

struct ReceiveCounters {
  std::uint64_t chained = 0;     // frames reassembled from several mbufs
  std::uint64_t oversize = 0;    // such frames dropped: longer than the link's MTU allows
  std::uint64_t other_vlan = 0;  // frames dropped: their VLAN is not that of the link
  // Frames handed over although the link steers: they came on the queue of another shard.
  std::uint64_t wrong_queue = 0;
};

class Receiver {
 public:
  // `seat`: passes frames to other shards; nullptr: there are none.
  Receiver(DeviceShare& share, Arp& arp, Seat* seat);

  // Passes received frames to the engine and to the shards they belong to, at most kTurnBursts *
  // kBurst frames plus one burst. Returns the number of frames moved.
  unsigned run(Engine& engine, Tap* tap, Time now);

  [[nodiscard]] const ReceiveCounters& counters() const { return counters_; }

 private:
  bool take_arp(Bytes frame, Time now);
  bool hand_over(Bytes frame);
  Bytes frame_of(const rte_mbuf* mbuf, std::byte* buffer);

  DeviceShare& share_;
  Arp& arp_;
  Seat* const seat_;
  FrameBuffers joined_;  // one frame per place in a burst
  const std::uint16_t burst_;
  ReceiveCounters counters_;
};

}  // namespace stp::port
