// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/mbuf_pool.h"

namespace stp::port {

MbufPool make_mbuf_pool(const std::string& name, unsigned count, std::size_t data_room) {
  // No caches per lcore: the threads that poll are none of DPDK's and may change. A stack gives
  // out the mbuf that was used last, whose memory is still in the processor's cache.
  const std::size_t room = data_room == 0 ? 0 : data_room + RTE_PKTMBUF_HEADROOM;
  return MbufPool(rte_pktmbuf_pool_create_by_ops(
      name.c_str(), count, 0, 0, static_cast<std::uint16_t>(room), SOCKET_ID_ANY, "stack"));
}

}  // namespace stp::port
