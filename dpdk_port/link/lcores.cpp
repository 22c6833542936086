// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/lcores.h"

#include <unistd.h>

namespace stp::port {

Lcores make_lcores(const std::vector<unsigned>& usable,
                   const std::function<bool(unsigned)>& knows) {
  std::string list;
  for (std::size_t i = 0; i < usable.size() && usable[i] < kDpdkCpus; ++i) {
    if (!knows(usable[i])) continue;
    const unsigned first = usable[i];
    unsigned last = first;
    while (i + 1 < usable.size() && usable[i + 1] == last + 1 && last + 1 < kDpdkCpus &&
           knows(last + 1)) {
      ++last;
      ++i;
    }
    if (!list.empty()) list += ',';
    list += std::to_string(first);
    if (last != first) list += '-' + std::to_string(last);
  }
  if (!list.empty()) return {"0@(" + list + ")", false};
  unsigned other = 0;  // there may be no CPU 0
  while (other < kDpdkCpus && !knows(other)) ++other;
  return {"0@" + std::to_string(other % kDpdkCpus), true};
}

std::string why_foreign(const std::vector<unsigned>& usable) {
  std::string text = "it knows none of the CPUs that this process may use";
  if (usable.empty()) return text;
  text += " (the first is " + std::to_string(usable.front()) + "): ";
  if (usable.front() >= kDpdkCpus) return text + "permit one below " + std::to_string(kDpdkCpus);
  return text + "they are not in /sys/devices/system/cpu: permit one that is there";
}

bool dpdk_knows_cpu(unsigned cpu) {
  const auto file = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/core_id";
  return ::access(file.c_str(), F_OK) == 0;
}

}  // namespace stp::port
