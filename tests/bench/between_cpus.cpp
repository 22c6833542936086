// SPDX-License-Identifier: BSD-3-Clause
// between_cpus: how near CPU 0 and CPU 1 are to each other now, and whether others work on their
// cores, which the host of a virtual machine changes at any time. Takes some milliseconds.
// First it prints how often a second a cache line goes there and back: a thread on each CPU writes
// a number into it when the other one has written the number before. The best of many times: three
// to six times as often where both share a cache. A copy of many bytes would not tell: the
// processor asks for many lines at a time.
// Then it prints how many times as long additions take on the slower of the two, while both add, as
// they do alone: 1 on a core of its own, about 1.5 where another hardware thread of the core works,
// which may be the other CPU, or one of another machine.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/bench/command_line.h"

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
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
    const Seconds taken = Clock::now() - begin;
    best = std::max(best, kTrips / taken.count());
  }
  return best;
}

// Additions that do not wait for each other: alone on a core a thread does as many at a time as the
// core can, so it notices another one at once.
double time_of_additions() {
  constexpr unsigned kRounds = 20'000;
  std::uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0;
  const auto begin = Clock::now();
  for (unsigned i = 0; i < kRounds; ++i) {
    ++a, ++b, ++c, ++d, ++e, ++f;
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  }
  return Seconds(Clock::now() - begin).count();
}

// What takes longest is what was interrupted: the best and the median stay the same.
struct Additions {
  double best = 0, median = 0;

  void measure() {
    std::array<double, 500> times;
    for (auto& time : times) time = time_of_additions();
    std::sort(times.begin(), times.end());
    best = times.front();
    median = times[times.size() / 2];
  }
};

// The one that sleeps meanwhile leaves its CPU alone.
double slower_by() {
  Additions alone[2], both[2];
  alone[0].measure();
  std::thread([&] {
    pin(1);
    alone[1].measure();
  }).join();
  std::thread other([&] {
    pin(1);
    both[1].measure();
  });
  both[0].measure();
  other.join();
  double most = 1;
  for (const int cpu : {0, 1})
    most = std::max(most, both[cpu].median / std::min(alone[cpu].best, both[cpu].best));
  return most;
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
    std::printf("%.0f %.2f\n", best, slower_by());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "between_cpus: %s\n", e.what());
    return 1;
  }
  return 0;
}
