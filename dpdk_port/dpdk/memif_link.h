// SPDX-License-Identifier: BSD-3-Clause
// A memif that takes and gives mbufs, as an ethdev does.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <memory>
#include <string>

#include "dpdk_port/memif/memif.h"

namespace stp::port {

struct MemifCounters {
  std::uint64_t received = 0, sent = 0;
  std::uint64_t too_long = 0;   // received frames that fit no mbuf
  std::uint64_t no_buffer = 0;  // turns without free mbufs
};

class MemifLink {
 public:
  static std::unique_ptr<MemifLink> open(const memif::Settings& settings, std::string& error);

  // As rte_eth_tx_burst and rte_eth_rx_burst: nothing where nobody is connected.
  std::uint16_t send(rte_mbuf** mbufs, std::uint16_t count);
  std::uint16_t receive(rte_mempool* pool, rte_mbuf** mbufs, std::uint16_t count);
  void tend(Time now) { memif_->tend(now); }

  [[nodiscard]] const memif::Memif& memif() const { return *memif_; }
  [[nodiscard]] const MemifCounters& counters() const { return counters_; }

 private:
  explicit MemifLink(std::unique_ptr<memif::Memif> memif) : memif_(std::move(memif)) {}
  std::unique_ptr<memif::Memif> memif_;
  MemifCounters counters_;
};

}  // namespace stp::port
