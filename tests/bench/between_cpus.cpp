// SPDX-License-Identifier: BSD-3-Clause
// between_cpus: how near CPU 0 and CPU 1 are to each other now, which the host of a virtual machine
// changes at any time. A thread on CPU 1 copies into a ring of 2 MiB, and one on CPU 0 out of it.
// Prints the bytes a second, the best of three times 16 MiB: two or three times as many where both
// share a cache. Takes some milliseconds.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/command_line.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kPiece = 64 << 10, kRing = 32, kPieces = 256, kTimes = 3;

void pin(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (::pthread_setaffinity_np(::pthread_self(), sizeof set, &set) != 0)
    throw std::runtime_error("there are no CPUs 0 and 1");
}

struct Ring {
  std::vector<char> bytes = std::vector<char>(kPiece * kRing, 'x');
  alignas(64) std::atomic<std::size_t> written{0};
  alignas(64) std::atomic<std::size_t> read{0};
};

void copy_in(Ring& ring) {
  const std::vector<char> from(kPiece * kRing, 'y');
  for (std::size_t i = 0; i < kTimes * kPieces; ++i) {
    while (i - ring.read.load(std::memory_order_acquire) >= kRing) continue;
    const std::size_t at = i % kRing * kPiece;
    std::memcpy(&ring.bytes[at], &from[at], kPiece);
    ring.written.store(i + 1, std::memory_order_release);
  }
}

// A compiler leaves out a copy that nobody reads.
void must_be_there(const char* bytes) {
  asm volatile("" : : "r"(bytes) : "memory");
}

double copy_out(Ring& ring) {
  std::vector<char> to(kPiece);
  double best = 0;
  for (std::size_t i = 0, time = 0; time < kTimes; ++time) {
    const auto begin = Clock::now();
    for (const std::size_t end = i + kPieces; i < end; ++i) {
      while (ring.written.load(std::memory_order_acquire) <= i) continue;
      std::memcpy(to.data(), &ring.bytes[i % kRing * kPiece], kPiece);
      must_be_there(to.data());
      ring.read.store(i + 1, std::memory_order_release);
    }
    const std::chrono::duration<double> taken = Clock::now() - begin;
    best = std::max(best, kPieces * kPiece / taken.count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kUsage = "usage: between_cpus\n";
  stp::bench::hold_to(kUsage, argc, argv);
  if (argc > 1) stp::bench::refuse(argv[0], std::string("it takes no words: ") + argv[1], kUsage);
  try {
    Ring ring;
    pin(1);
    std::thread writer(copy_in, std::ref(ring));  // inherits the CPU
    pin(0);
    const double best = copy_out(ring);
    writer.join();
    std::printf("%.0f\n", best);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "between_cpus: %s\n", e.what());
    return 1;
  }
  return 0;
}
