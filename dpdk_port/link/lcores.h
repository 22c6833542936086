// SPDX-License-Identifier: BSD-3-Clause
// DPDK's --lcores: one lcore, which may run on any CPU of the program. Threads that poll a link are
// not lcores.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stp::port {

inline constexpr unsigned kDpdkCpus = 1024;  // DPDK knows no others

struct Lcores {
  std::string list;      // "0@(0-3,6)"
  bool foreign = false;  // a CPU that the program may not use: DPDK knows none of the others
};

// `knows`: whether DPDK finds that CPU.
Lcores make_lcores(const std::vector<unsigned>& usable, const std::function<bool(unsigned)>& knows);

// Why DPDK knows none of these CPUs, and what to do about it.
std::string why_foreign(const std::vector<unsigned>& usable);

// As DPDK looks for it.
bool dpdk_knows_cpu(unsigned cpu);

}  // namespace stp::port
