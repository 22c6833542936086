// SPDX-License-Identifier: BSD-3-Clause
// A LIFO mbuf pool: it gives out the mbuf used last, whose memory is still in the processor's
// caches. DPDK's own "stack" pool does the same under a lock, whose exclusive write waits for all
// stores of the frame before it. This pool has no lock: only one thread at a time may use it.
#pragma once

namespace stp::port {

// Registers it with DPDK on the first call and returns its name. nullptr: DPDK accepts no more
// pools.
const char* lifo_pool();

}  // namespace stp::port
