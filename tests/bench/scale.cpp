// SPDX-License-Identifier: BSD-3-Clause
// stp-scale [--seconds S] [--shards N]: measures the shards of one link together, in one process.
// Each shard has a thread that puts into memory on its own shard ("apart": the shards are
// independent) or on the next one ("across": each frame goes from Node to Node). With 1, 2, 4 and 8
// shards, or N. Each thread is pinned to its own CPU; if there are fewer CPUs than shards, it says
// so. Prints figures and does not judge them.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "tests/bench/managed_pair.h"

namespace stp::bench {
namespace {

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

struct Run {
  unsigned shards;
  bool across;
  std::uint32_t window;
  std::size_t length;
  double seconds;
};

// Puts per second of all threads together.
double rate(const Run& run, const std::vector<int>& cpus) {
  const auto link = "loop,queues=" + std::to_string(run.shards);
  std::vector<std::unique_ptr<ManagedPair>> pairs;
  for (unsigned i = 0; i < run.shards; ++i) {
    const auto target = run.across ? (i + 1) % run.shards : i;
    const auto port = ":" + std::to_string(3000 + i);
    pairs.push_back(std::make_unique<ManagedPair>(link.c_str(), i + 1, target + 1, port.c_str()));
  }
  std::atomic<bool> stop{false};
  std::vector<std::uint64_t> done(run.shards);
  std::vector<std::thread> threads;
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < run.shards; ++i)
    threads.emplace_back([&, i] {
      pin_to(cpus[i % cpus.size()]);
      done[i] = pairs[i]->puts_until(stop, run.window, run.length);
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(run.seconds));
  stop = true;
  for (auto& thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::uint64_t sum = 0;
  for (const auto puts : done) sum += puts;
  return static_cast<double>(sum) / took.count();
}

void measure(unsigned shards, bool across, double seconds, const std::vector<int>& cpus) {
  constexpr std::uint32_t kWindow = 64;
  constexpr std::size_t kSmall = 8, kLarge = 8192;
  const auto small = rate({shards, across, kWindow, kSmall, seconds}, cpus);
  const auto large = rate({shards, across, kWindow, kLarge, seconds}, cpus);
  const auto alone = rate({shards, across, 1, kSmall, seconds}, cpus);
  std::printf("shards %2u %-6s %9.0f puts/s of 8 bytes, %7.0f MB/s, %9.0f puts/s one at a time%s\n",
              shards, across ? "across" : "apart", small, large * kLarge / 1e6, alone,
              shards > cpus.size() ? "  (fewer CPUs than shards)" : "");
}

int run(int argc, char** argv) {
  double seconds = 1;
  std::vector<unsigned> all{1, 2, 4, 8};
  for (int i = 1; i < argc; i += 2) {
    const auto name = std::string(argv[i]);
    const auto value = i + 1 < argc ? std::atof(argv[i + 1]) : 0;
    if (name == "--seconds" && value > 0) {
      seconds = value;
    } else if (name == "--shards" && value >= 1 && value <= 16) {
      all = {static_cast<unsigned>(value)};
    } else {
      std::fprintf(stderr, "usage: stp-scale [--seconds S] [--shards 1..16]\n");
      return 2;
    }
  }
  const auto cpus = usable_cpus();
  std::printf("%zu CPUs\n", cpus.size());
  for (const auto shards : all)
    for (const bool across : {false, true})
      if (shards > 1 || !across) measure(shards, across, seconds, cpus);
  return 0;
}

}  // namespace
}  // namespace stp::bench

int main(int argc, char** argv) try {
  return stp::bench::run(argc, argv);
} catch (const std::exception& failure) {
  std::fprintf(stderr, "stp-scale: %s\n", failure.what());
  return 1;
}
