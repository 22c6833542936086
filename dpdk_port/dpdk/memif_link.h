// SPDX-License-Identifier: BSD-3-Clause
// A memif that takes and gives mbufs, as an ethdev does.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dpdk_port/link/crossing.h"
#include "dpdk_port/memif/memif.h"

namespace stp::port {

struct MemifCounters {
  std::uint64_t received = 0, sent = 0;
  std::uint64_t too_long = 0;   // received frames that fit no mbuf
  std::uint64_t no_buffer = 0;  // turns without free mbufs
};

class MemifLink {
 public:
  // `settings.shards`: each has its counters and, by link/crossing.h, its rings.
  static std::unique_ptr<MemifLink> open(const memif::Settings& settings, std::string& error);

  // As rte_eth_tx_burst and rte_eth_rx_burst: nothing where nobody is connected.
  std::uint16_t send(unsigned shard, rte_mbuf** mbufs, std::uint16_t count);
  std::uint16_t receive(unsigned shard, rte_mempool* pool, rte_mbuf** mbufs, std::uint16_t count);
  void tend(Time now) { memif_->tend(now); }
  [[nodiscard]] bool connected() const { return memif_->connected(); }
  // Where it is connected: the rings that the shard fills.
  [[nodiscard]] QueuesToSend rings_of(unsigned shard) {
    return queues_to_send(static_cast<unsigned>(memif_->senders().size()), parts_[shard].of);
  }

  [[nodiscard]] memif::Memif& memif() { return *memif_; }
  [[nodiscard]] const memif::Memif& memif() const { return *memif_; }
  [[nodiscard]] const MemifCounters& counters(unsigned shard) const {
    return parts_[shard].counters;
  }

 private:
  // What one shard's thread writes.
  struct alignas(kCacheLine) Part {
    PortShare of;
    unsigned next = 0;  // the ring to look at first
    MemifCounters counters;
  };
  MemifLink(std::unique_ptr<memif::Memif> memif, unsigned shards);
  static unsigned take(Part& part, memif::Receiver& receiver, rte_mempool* pool, rte_mbuf** mbufs,
                       unsigned count);

  std::unique_ptr<memif::Memif> memif_;
  std::vector<Part> parts_;
};

}  // namespace stp::port
