// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>

namespace stp::port {
namespace {

constexpr std::size_t kWord = 8 * sizeof(__cpu_mask);  // bits; a cpu_set_t is a row of such words

using CpuWords = std::vector<__cpu_mask>;

cpu_set_t* as_set(CpuWords& words) {
  return reinterpret_cast<cpu_set_t*>(words.data());
}
std::size_t bytes_of(const CpuWords& words) {
  return words.size() * sizeof(__cpu_mask);
}

}  // namespace

std::vector<unsigned> usable_cpus() {
  // The kernel refuses a set with fewer bits than it has CPUs.
  for (std::size_t bits = CPU_SETSIZE; bits <= kMostCpus; bits *= 2) {
    CpuWords words(bits / kWord);
    if (::sched_getaffinity(0, bytes_of(words), as_set(words)) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    std::vector<unsigned> cpus;
    for (unsigned cpu = 0; cpu < bits; ++cpu) {
      if ((words[cpu / kWord] >> (cpu % kWord) & 1) != 0) cpus.push_back(cpu);
    }
    return cpus;
  }
  return {};
}

unsigned usable_cpu_count() {
  return static_cast<unsigned>(std::max<std::size_t>(usable_cpus().size(), 1));
}

int stay_on_cpus(const std::vector<unsigned>& cpus) {
  CpuWords words(CPU_SETSIZE / kWord);
  for (const unsigned cpu : cpus) {
    if (cpu >= kMostCpus) return EINVAL;
    words.resize(std::max(words.size(), cpu / kWord + 1));
    words[cpu / kWord] |= __cpu_mask{1} << (cpu % kWord);
  }
  return ::sched_setaffinity(0, bytes_of(words), as_set(words)) == 0 ? 0 : errno;
}

}  // namespace stp::port
