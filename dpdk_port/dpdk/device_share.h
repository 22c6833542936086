// SPDX-License-Identifier: BSD-3-Clause
// What one shard uses of a link's device: its queues and its pool of mbufs. The first shard is the
// device's owner; the others enter before they use it.
#pragma once

#include <rte_mbuf.h>

#include <memory>
#include <string>

#include "dpdk_port/link/crossing.h"
#include "dpdk_port/link/frame_buffers.h"
#include "stp/types.h"

namespace stp::port {

// Pools of mbufs.
struct FreePool {
  void operator()(rte_mempool* pool) const { rte_mempool_free(pool); }
};
using MbufPool = std::unique_ptr<rte_mempool, FreePool>;

// Who takes and returns mbufs: one thread at a time, or also threads of the driver.
enum class PoolUse { kOneThread, kAnyThread };

// `data_room`: bytes of a frame that fit one mbuf; 0: for attached memory only. nullptr: see
// rte_errno.
MbufPool make_mbuf_pool(const std::string& name, unsigned count, std::size_t data_room,
                        PoolUse use);

class Device;

class alignas(kCacheLine) DeviceShare {
 public:
  static constexpr unsigned kOwner = 0;

  DeviceShare(Device& device, PortShare of)
      : device_(device), of_(of), next_(of.index), inside_(of.index == kOwner) {}

  // False: the device does not run, or is being changed. Then nothing is sent or received.
  bool enter();
  void leave();

  // As Device::runs(), from enter() to leave().
  [[nodiscard]] bool runs() const;
  // Has queues to send on, as far as is known. Else its frames leave through the owner.
  [[nodiscard]] bool sends() const {
    return of_.index == kOwner || (may_send_ && (!inside_ || has_queues()));
  }
  // As rte_eth_tx_burst and rte_eth_rx_burst. Only while it runs.
  std::uint16_t send(rte_mbuf** mbufs, std::uint16_t count);
  // With `rests` an mbuf may have only the head of a frame: the place of the same number there
  // says where the other bytes are, until release(). Call it before the next receive().
  std::uint16_t receive(rte_mbuf** mbufs, Bytes* rests, std::uint16_t count);
  void release();

  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] PortShare of() const { return of_; }
  [[nodiscard]] rte_mempool* pool() const { return pool_.get(); }
  void set_pool(MbufPool pool) { pool_ = std::move(pool); }
  // Decides whether it may ever have queues to send on, when the device has been opened.
  void settle();

 private:
  [[nodiscard]] bool has_queues() const;
  std::uint16_t send_by_port(const QueuesToSend& queues, rte_mbuf** mbufs, std::uint16_t count);
  std::uint16_t receive_whole(rte_mbuf** mbufs, std::uint16_t count);
  std::uint16_t receive_in_turn(rte_mbuf** mbufs, std::uint16_t count);

  Device& device_;
  const PortShare of_;
  MbufPool pool_;
  unsigned next_;  // the queue to look at first
  bool inside_, may_send_ = true;
};

}  // namespace stp::port
