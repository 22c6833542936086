// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/scheduling.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stp::service {

std::optional<Scheduling> scheduling(pid_t thread) {
  Scheduling found;
  if (::syscall(SYS_sched_getattr, thread, &found, sizeof found, 0) != 0) return std::nullopt;
  return found;
}

void ask_for_short_slices() {
  auto wanted = scheduling();
  if (!wanted || wanted->policy != SCHED_OTHER) return;
  wanted->slice = kShortSlice;
  ::syscall(SYS_sched_setattr, 0, &*wanted, 0);
}

}  // namespace stp::service
