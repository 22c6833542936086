// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/usage.h"

#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stp::perf {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

int open_instruction_counter() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_HARDWARE;
  attr.config = PERF_COUNT_HW_INSTRUCTIONS;
  attr.inherit = 1;
  attr.exclude_kernel = 1;  // what an ordinary user may count
  attr.exclude_hv = 1;
  return static_cast<int>(::syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

Usage operator-(const Usage& later, const Usage& earlier) {
  Usage difference{later.cpu_seconds - earlier.cpu_seconds, std::nullopt};
  if (later.instructions && earlier.instructions)
    difference.instructions = *later.instructions - *earlier.instructions;
  return difference;
}

UsageMeter::UsageMeter() : counter_(open_instruction_counter()) {}

UsageMeter::~UsageMeter() {
  if (counter_ >= 0) ::close(counter_);
}

Usage UsageMeter::now() const {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  Usage usage{seconds(used.ru_utime) + seconds(used.ru_stime), std::nullopt};
  std::uint64_t count = 0;
  if (counter_ >= 0 && ::read(counter_, &count, sizeof count) == sizeof count)
    usage.instructions = count;
  return usage;
}

}  // namespace stp::perf
