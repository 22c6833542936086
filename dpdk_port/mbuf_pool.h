// SPDX-License-Identifier: BSD-3-Clause
// Pools of mbufs that one thread at a time uses.
#pragma once

#include <rte_mbuf.h>

#include <memory>
#include <string>

namespace stp::port {

struct FreePool {
  void operator()(rte_mempool* pool) const { rte_mempool_free(pool); }
};
using MbufPool = std::unique_ptr<rte_mempool, FreePool>;

// `data_room`: bytes of a frame that fit one mbuf; 0: for attached memory only. nullptr: rte_errno.
MbufPool make_mbuf_pool(const std::string& name, unsigned count, std::size_t data_room);

}  // namespace stp::port
