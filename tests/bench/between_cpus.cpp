// SPDX-License-Identifier: BSD-3-Clause
// between_cpus: how near CPU 0 and CPU 1 are to each other now, which the host of a virtual machine
// changes at any time. A thread on each of them writes a number into a cache line when the other
// one has written the number before. Prints how often a second the line goes there and back, the
// best of many times: three to six times as often where both share a cache. A copy of many bytes
// would not tell: the processor asks for many lines at a time. Takes some milliseconds.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/bench/command_line.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned kTrips = 500, kTimes = 40;

void pin(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (::pthread_setaffinity_np(::pthread_self(), sizeof set, &set) != 0)
    throw std::runtime_error("there are no CPUs 0 and 1");
}

struct alignas(128) Line {
  std::atomic<unsigned> number{0};

  void await(unsigned awaited) const {
    while (number.load(std::memory_order_acquire) != awaited) continue;
  }
};

void answer(Line& line) {
  for (unsigned i = 0; i < kTrips * kTimes; ++i) {
    line.await(2 * i + 1);
    line.number.store(2 * i + 2, std::memory_order_release);
  }
}

double ask(Line& line) {
  double best = 0;
  for (unsigned i = 0, time = 0; time < kTimes; ++time) {
    const auto begin = Clock::now();
    for (const unsigned end = i + kTrips; i < end; ++i) {
      line.number.store(2 * i + 1, std::memory_order_release);
      line.await(2 * i + 2);
    }
    const std::chrono::duration<double> taken = Clock::now() - begin;
    best = std::max(best, kTrips / taken.count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kUsage = "usage: between_cpus\n";
  stp::bench::hold_to(kUsage, argc, argv);
  if (argc > 1) stp::bench::refuse(argv[0], std::string("it takes no words: ") + argv[1], kUsage);
  try {
    Line line;
    pin(1);
    std::thread other([&] { answer(line); });  // inherits the CPU
    pin(0);
    const double best = ask(line);
    other.join();
    std::printf("%.0f\n", best);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "between_cpus: %s\n", e.what());
    return 1;
  }
  return 0;
}
