// SPDX-License-Identifier: BSD-3-Clause
// Pools of mbufs.
#pragma once

#include <rte_mbuf.h>

#include <memory>
#include <string>

namespace stp::port {

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

}  // namespace stp::port
