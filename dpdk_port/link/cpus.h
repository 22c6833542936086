// SPDX-License-Identifier: BSD-3-Clause
// The CPUs that a thread may run on, however many the machine has.
#pragma once

#include <vector>

namespace stp::port {

inline constexpr unsigned kMostCpus = 1U << 16;  // no kernel knows as many

// Those of the calling thread, in order; std::thread::hardware_concurrency() may count all of the
// machine. Empty: the kernel does not say.
std::vector<unsigned> usable_cpus();
unsigned usable_cpu_count();  // at least 1

// The calling thread runs only there from now on. Returns 0 or an error number.
int stay_on_cpus(const std::vector<unsigned>& cpus);

}  // namespace stp::port
