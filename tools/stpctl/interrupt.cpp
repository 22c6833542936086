// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/interrupt.h"

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <csignal>

namespace stp::stpctl {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

sigset_t signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

void watch_for_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { flag = true; };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  const auto set = signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void let_interrupts_in() {
  const auto set = signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool interrupted() {
  return flag;
}

bool sleep_until(std::chrono::steady_clock::time_point until) {
  // A signal that arrives between the check and the sleep is noticed after this time at most.
  constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(100);
  for (;;) {
    if (flag) return false;
    const auto left = until - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds::zero()) return true;
    const auto slice = std::min<std::chrono::nanoseconds>(left, kSlice);
    const timespec length{.tv_sec = 0, .tv_nsec = static_cast<long>(slice.count())};
    ::nanosleep(&length, nullptr);
  }
}

}  // namespace stp::stpctl
