// SPDX-License-Identifier: BSD-3-Clause
#include "tests/managed/time/clock.h"

#include <time.h>

#include <atomic>

#include "dpdk_port/link/engine.h"

namespace stp {
namespace {

std::atomic<Time> ahead{0};

}  // namespace

namespace test {

void let_pass(Time time) {
  ahead += time;
}

}  // namespace test

// Replaces dpdk_port/link/clock.cpp.
Time port::now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<Time>(time.tv_sec) * kSecond + static_cast<Time>(time.tv_nsec) + ahead;
}

}  // namespace stp
