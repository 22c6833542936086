// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/mbuf_pool.h"

#include "dpdk_port/dpdk/lifo_pool.h"

namespace stp::port {

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
