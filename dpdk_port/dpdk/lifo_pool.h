// SPDX-License-Identifier: BSD-3-Clause
// The order in which a pool of mbufs gives them out: the one that was used last comes first, since
// its memory is still in the processor's caches. DPDK's own "stack" does the same behind a lock,
// whose exclusive write waits for every store of the frame before it. Here there is none: one
// thread at a time may use the pool.
#pragma once

namespace stp::port {

// Its name among DPDK's, which hear of it with the first call. nullptr: they take no more.
const char* lifo_pool();

}  // namespace stp::port
