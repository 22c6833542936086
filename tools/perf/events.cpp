// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/events.h"

#include <sched.h>

#include <cerrno>

namespace stp::perf {
namespace {

constexpr std::int64_t kLongestSleep = 100'000;  // us

}  // namespace

Events::Events(stm_queue_t queue, bool sleeps, bool crowded)
    : queue_(queue), sleeps_(sleeps), crowded_(crowded) {}

int Events::take() {
  const auto most = static_cast<int>(batch_.size());
  if (sleeps_) {
    const auto count = stm_queue_wait(queue_, 1, batch_.data(), most, kLongestSleep);
    if (count == -EWOULDBLOCK || count == -EINTR) return 0;
    return checked(count, "waiting for events");
  }
  const auto count = checked(stm_queue_poll(queue_, batch_.data(), most), "polling for events");
  if (count == 0 && crowded_) ::sched_yield();
  return count;
}

}  // namespace stp::perf
