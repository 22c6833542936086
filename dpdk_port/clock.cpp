// SPDX-License-Identifier: BSD-3-Clause
// The system's time, alone in its file: tests that let time pass link another clock.
#include <time.h>

#include "dpdk_port/port.h"

namespace stp::port {

Time now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<Time>(time.tv_sec) * kSecond + static_cast<Time>(time.tv_nsec);
}

}  // namespace stp::port
