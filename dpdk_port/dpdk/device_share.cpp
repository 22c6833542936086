// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/device_share.h"

#include <rte_mempool.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include "dpdk_port/dpdk/device.h"

namespace stp::port {
namespace {

// A LIFO pool gives out the mbuf used last, whose memory is still in the processor's caches. DPDK's
// own "stack" pool does the same under a lock, whose exclusive write waits for all stores of the
// frame before it. This pool has no lock: only one thread at a time may use it.
constexpr std::string_view kName = "stp_lifo";

using Objects = std::vector<void*>;  // with room for all of the pool's

Objects& objects_of(const rte_mempool* pool) {
  return *static_cast<Objects*>(pool->pool_data);
}

int make(rte_mempool* pool) {
  try {
    auto objects = std::make_unique<Objects>();
    objects->reserve(pool->size);
    pool->pool_data = objects.release();
    return 0;
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

void destroy(rte_mempool* pool) {
  delete static_cast<Objects*>(pool->pool_data);
}

int put(rte_mempool* pool, void* const* some, unsigned count) {
  Objects& objects = objects_of(pool);
  if (count > pool->size - objects.size()) return -ENOBUFS;
  objects.insert(objects.end(), some, some + count);
  return 0;
}

int take(rte_mempool* pool, void** some, unsigned count) {
  Objects& objects = objects_of(pool);
  if (count > objects.size()) return -ENOENT;
  std::copy(objects.rbegin(), objects.rbegin() + count, some);
  objects.resize(objects.size() - count);
  return 0;
}

unsigned free_count(const rte_mempool* pool) {
  return static_cast<unsigned>(objects_of(pool).size());
}

rte_mempool_ops operations() {
  rte_mempool_ops ops{};
  kName.copy(ops.name, sizeof ops.name - 1);
  ops.alloc = make;
  ops.free = destroy;
  ops.enqueue = put;
  ops.dequeue = take;
  ops.get_count = free_count;
  return ops;
}

// Registers it with DPDK on the first call and returns its name. nullptr: DPDK accepts no more
// pools.
const char* lifo_pool() {
  static const int index = [] {
    static const rte_mempool_ops ops = operations();
    return rte_mempool_register_ops(&ops);
  }();
  return index < 0 ? nullptr : kName.data();
}

}  // namespace

MbufPool make_mbuf_pool(const std::string& name, unsigned count, std::size_t data_room,
                        PoolUse use) {
  // No caches per lcore: polling threads are not lcores and may change.
  const char* const lifo = use == PoolUse::kOneThread ? lifo_pool() : nullptr;
  const std::size_t room = data_room == 0 ? 0 : data_room + RTE_PKTMBUF_HEADROOM;
  return MbufPool(rte_pktmbuf_pool_create_by_ops(name.c_str(), count, 0, 0,
                                                 static_cast<std::uint16_t>(room), SOCKET_ID_ANY,
                                                 lifo != nullptr ? lifo : "stack"));
}

void DeviceShare::settle() {
  may_send_ =
      of_.index == kOwner || device_.memif_ != nullptr || device_.queues_of_ethdev(of_).count > 0;
}

bool DeviceShare::enter() {
  if (of_.index != kOwner) inside_ = device_.gate().enter(of_.index);
  return inside_;
}

void DeviceShare::leave() {
  if (of_.index == kOwner || !inside_) return;
  inside_ = false;
  device_.gate().leave(of_.index);
}

bool DeviceShare::runs() const {
  return inside_ && device_.runs();
}

bool DeviceShare::has_queues() const {
  return device_.queues_to_send(of_).count > 0;
}

std::uint16_t DeviceShare::send(rte_mbuf** mbufs, std::uint16_t count) {
  if (device_.memif_) return device_.memif_->send(of_.index, mbufs, count);
  if (device_.socket_) return device_.socket_->send(mbufs, count);
  const QueuesToSend queues = device_.queues_to_send(of_);
  if (queues.count > 1) return send_by_port(queues, mbufs, count);
  return rte_eth_tx_burst(device_.port_, static_cast<std::uint16_t>(queues.first), mbufs, count);
}

// Frames in a row for one queue make a burst.
std::uint16_t DeviceShare::send_by_port(const QueuesToSend& queues, rte_mbuf** mbufs,
                                        std::uint16_t count) {
  const auto queue_of = [&](const rte_mbuf* mbuf) {
    const Bytes head(rte_pktmbuf_mtod(mbuf, const std::byte*), mbuf->data_len);
    return static_cast<std::uint16_t>(queues.at(Shards::port_of(head)));
  };
  std::uint16_t sent = 0;
  while (sent < count) {
    const std::uint16_t queue = queue_of(mbufs[sent]);
    std::uint16_t row = 1;
    while (sent + row < count && queue_of(mbufs[sent + row]) == queue) ++row;
    const std::uint16_t taken = rte_eth_tx_burst(device_.port_, queue, mbufs + sent, row);
    sent = static_cast<std::uint16_t>(sent + taken);
    if (taken < row) break;
  }
  return sent;
}

std::uint16_t DeviceShare::receive(rte_mbuf** mbufs, Bytes* rests, std::uint16_t count) {
  if (device_.memif_) return device_.memif_->receive(of_.index, pool(), mbufs, rests, count);
  const auto received = receive_whole(mbufs, count);
  if (rests != nullptr) std::fill_n(rests, received, Bytes());
  return received;
}

std::uint16_t DeviceShare::receive_whole(rte_mbuf** mbufs, std::uint16_t count) {
  if (device_.receive_queues_ > 1) return receive_in_turn(mbufs, count);
  if (of_.index != kOwner) return 0;
  if (device_.socket_) return device_.socket_->receive(pool(), mbufs, count);
  return rte_eth_rx_burst(device_.port_, 0, mbufs, count);
}

void DeviceShare::release() {
  if (device_.memif_) device_.memif_->release(of_.index);
}

// Each call begins with another queue, so that a busy one does not keep the others waiting.
std::uint16_t DeviceShare::receive_in_turn(rte_mbuf** mbufs, std::uint16_t count) {
  const unsigned queues = device_.receive_queues_;
  std::uint16_t received = 0;
  for (unsigned queue = of_.index; queue < queues && received < count; queue += of_.count) {
    if (next_ >= queues) next_ = of_.index;
    received = static_cast<std::uint16_t>(
        received + rte_eth_rx_burst(device_.port_, static_cast<std::uint16_t>(next_),
                                    mbufs + received,
                                    static_cast<std::uint16_t>(count - received)));
    next_ += of_.count;
  }
  return received;
}

}  // namespace stp::port
