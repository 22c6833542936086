// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/turn_clock.h"

#include <rte_cpuflags.h>
#include <rte_cycles.h>

#include <algorithm>

#include "dpdk_port/port.h"
#include "stp/base/assert.h"

namespace stp::port {
namespace {

// Ticks of the counter in kOldest. 0 if the counter may stop or change its rate, or if its rate is
// unknown because no DPDK device has been opened.
std::uint64_t ticks() {
#ifdef RTE_ARCH_X86
  if (rte_cpu_get_flag_enabled(RTE_CPUFLAG_INVTSC) <= 0) return 0;
#endif
  return rte_get_tsc_hz() * TurnClock::kOldest / kSecond;
}

}  // namespace

TurnClock::TurnClock() : oldest_(ticks()) {}

Time TurnClock::now() {
  // The unsigned difference also covers a counter that went back, for example when a machine is
  // migrated.
  const auto counter = rte_rdtsc();
  if (counter - asked_ < oldest_) return time_;
  asked_ = counter;
  const auto present = port::now();
  STP_ASSERT(present >= time_, "the system's clock never goes back");
  return time_ = present;
}

Time TurnClock::heed(Time present) {
  asked_ = rte_rdtsc();
  return time_ = std::max(time_, present);
}

}  // namespace stp::port
