// SPDX-License-Identifier: BSD-3-Clause
// Tests that simulate time link another clock.
#include "dpdk_port/link/engine.h"

#include <time.h>

namespace stp::port {

Time now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<Time>(time.tv_sec) * kSecond + static_cast<Time>(time.tv_nsec);
}

}  // namespace stp::port
