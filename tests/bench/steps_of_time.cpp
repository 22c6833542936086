// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/steps_of_time.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace stp::bench {
namespace {

constexpr long kStep = 200, kSecond = 1'000'000'000;  // nanoseconds

// As a timespec: this costs about as much as asking the system. One thread alone moves it on.
constinit std::atomic<time_t> seconds{0};  // 0: the clock is the system's
constinit std::atomic<long> nanoseconds{0};
constinit thread_local bool steps = false;

void step() {
  const long next = nanoseconds.load(std::memory_order_relaxed) + kStep;
  nanoseconds.store(next < kSecond ? next : 0, std::memory_order_relaxed);
  if (next >= kSecond) seconds.store(seconds.load(std::memory_order_relaxed) + 1);
}

}  // namespace

// From the next second on, so that it does not go back.
void let_time_step_here() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  seconds = time.tv_sec + 1;
  steps = true;
}

}  // namespace stp::bench

// In the place of libc's, for this program and its libraries.
extern "C" [[gnu::visibility("default")]] int clock_gettime(clockid_t clock,
                                                            timespec* out) noexcept {
  using namespace stp::bench;
  if (steps) step();
  out->tv_sec = seconds.load(std::memory_order_relaxed);
  out->tv_nsec = nanoseconds.load(std::memory_order_relaxed);
  if (out->tv_sec == 0) return static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
  return 0;
}
