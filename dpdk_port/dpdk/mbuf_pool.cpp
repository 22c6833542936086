// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/mbuf_pool.h"

#include <rte_mempool.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

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

}  // namespace stp::port
