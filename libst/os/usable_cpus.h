// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sched.h>

#include <algorithm>

namespace stp::service {

// How many CPUs the calling thread may run on. std::thread::hardware_concurrency() may count all
// CPUs of the machine.
inline unsigned usable_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  ::sched_getaffinity(0, sizeof cpus, &cpus);
  return static_cast<unsigned>(std::max(CPU_COUNT(&cpus), 1));
}

}  // namespace stp::service
