// SPDX-License-Identifier: BSD-3-Clause
// hand_over [--sleep] SECONDS: four processes hand a number on in a chain, there and back, as a
// program, its stpd, the peer's stpd and the peer do with a Put, and do nothing else. Each looks
// for the number and gives its CPU back in between (sched_yield), or sleeps until the one before it
// wakes it (eventfd). The first process is pinned to CPU 1, the last one to CPU 0, like the
// programs of a comparison; the two between run where the kernel puts them. Prints the median time
// there and back in microseconds: what is to be had on this machine.
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

#include "tests/bench/command_line.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kProcesses = 4;
constexpr std::uint32_t kEnd = 0;     // the number that ends all processes
constexpr std::uint32_t kBefore = 1;  // what every place has before the first number

// Where one process leaves the number for the next one.
class Place {
 public:
  explicit Place(bool sleeps) : event_(sleeps ? ::eventfd(0, 0) : -1) {
    if (sleeps && event_ < 0) throw std::runtime_error("eventfd");
  }
  void leave(std::uint32_t number) {
    number_.store(number, std::memory_order_release);
    const std::uint64_t one = 1;
    if (event_ >= 0 && ::write(event_, &one, sizeof one) != sizeof one) std::abort();
  }
  // The number that comes after `last`.
  std::uint32_t take(std::uint32_t last) const {
    std::uint64_t count = 0;
    if (event_ >= 0 && ::read(event_, &count, sizeof count) != sizeof count) std::abort();
    for (;;) {
      const auto number = number_.load(std::memory_order_acquire);
      if (number != last) return number;
      ::sched_yield();
    }
  }

 private:
  alignas(64) std::atomic<std::uint32_t> number_ = kBefore;
  const int event_;
};

// Where process i leaves the number for process i+1, and where that one leaves it on the way back.
struct Chain {
  explicit Chain(bool sleeps)
      : there{Place(sleeps), Place(sleeps), Place(sleeps)},
        back{Place(sleeps), Place(sleeps), Place(sleeps)} {}
  std::array<Place, kProcesses - 1> there, back;
};

void pin(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) throw std::runtime_error("pinning failed");
}

// Process `index` of the chain, not the first.
void hand_on(Chain& chain, std::size_t index) {
  const bool last = index == kProcesses - 1;
  for (std::uint32_t there = kBefore, back = kBefore;;) {
    there = chain.there[index - 1].take(there);
    if (!last) {
      chain.there[index].leave(there);
      if (there == kEnd) return;
      back = chain.back[index].take(back);
    }
    if (there == kEnd) return;
    chain.back[index - 1].leave(there);
  }
}

double median_round_trip(Chain& chain, double seconds) {
  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  std::uint32_t number = kBefore;
  auto start = Clock::now();
  do {
    chain.there.front().leave(number + 1);
    number = chain.back.front().take(number);
    const auto now = Clock::now();
    times.push_back(std::chrono::duration<double, std::micro>(now - start).count());
    start = now;
  } while (start < end);
  chain.there.front().leave(kEnd);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

double measure(bool sleeps, double seconds) {
  void* const shared =
      ::mmap(nullptr, sizeof(Chain), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("mmap");
  auto* const chain = new (shared) Chain(sleeps);
  for (std::size_t index = 1; index < kProcesses; ++index) {
    const auto child = ::fork();
    if (child < 0) throw std::runtime_error("fork");
    if (child > 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (index == kProcesses - 1) pin(0);
    hand_on(*chain, index);
    std::_Exit(0);
  }
  pin(1);
  const auto median = median_round_trip(*chain, seconds);
  while (::wait(nullptr) > 0) continue;
  return median;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr double kLeast = 0.001, kMost = 3'600;
  constexpr const char* kUsage = "usage: hand_over [--sleep] SECONDS (0.001 to 3600)\n";
  stp::bench::hold_to(kUsage, argc, argv);
  const bool sleeps = argc == 3 && std::strcmp(argv[1], "--sleep") == 0;
  char* rest = nullptr;
  const auto seconds = argc == (sleeps ? 3 : 2) ? std::strtod(argv[argc - 1], &rest) : 0;
  if (rest == nullptr || *rest != 0 || !(seconds >= kLeast && seconds <= kMost)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    std::printf("%.3f\n", measure(sleeps, seconds));
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "hand_over: %s\n", failure.what());
    return 1;
  }
}
