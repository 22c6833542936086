// SPDX-License-Identifier: BSD-3-Clause
// stp-scale [--seconds S] [--shards N] [--place PLACE]: measures the shards of a link together, in
// one process, with 1, 2, 4 and 8 shards, or N, in all of these places or one:
//   apart   each shard has a thread that puts into memory on its own shard: they are independent
//   across  the same into memory on the next shard: each frame goes from Node to Node
//   wire    between the two ends of a memif, each with so many shards: for each shard a thread of
//           one end puts, and one of the other end takes what comes
//   udp     the same between two links of UDP sockets on the loopback interface
// Each thread is pinned to a CPU of its own, and polls all domains that live on its shard. What
// there are too few CPUs for is marked. Prints figures and does not judge them.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "tests/bench/command_line.h"
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

enum class Where { kApart, kAcross, kWire, kUdp };
struct Place {
  Where where;
  const char* name;
  unsigned threads;  // for each shard
};
constexpr std::array kPlaces{Place{Where::kApart, "apart", 1}, Place{Where::kAcross, "across", 1},
                             Place{Where::kWire, "wire", 2}, Place{Where::kUdp, "udp", 2}};
bool has_place(const char* name) {
  return std::any_of(kPlaces.begin(), kPlaces.end(),
                     [&](const Place& place) { return std::strcmp(place.name, name) == 0; });
}
bool has_two_ends(Where where) {
  return where == Where::kWire || where == Where::kUdp;
}

struct Run {
  unsigned shards;
  Where where;
  std::uint32_t window;
  std::size_t length;
  double seconds;
};

PairPlaces places_of(const Run& run, unsigned i) {
  const auto queues = ",queues=" + std::to_string(run.shards);
  PairPlaces places;
  places.shard_a = places.shard_b = i + 1;
  places.port = ":" + std::to_string(3000 + i);
  places.link_a = places.link_b = "loop" + queues;
  if (run.where == Where::kAcross) places.shard_b = (i + 1) % run.shards + 1;
  if (run.where == Where::kUdp) {
    // Another program may have STP's own port.
    places.link_a = "udp:127.0.0.1,mtu=9000,port=28181" + queues;
    places.link_b = "udp:127.0.0.1,mtu=9000,port=28182" + queues;
    places.host = "127.0.0.1/28182";
  }
  if (run.where != Where::kWire) return places;
  constexpr auto kMac = "02:00:00:00:00:0b";
  const auto memif = "memif:/tmp/stp-scale-" + std::to_string(::getpid()) + ".sock" + queues;
  places.link_a = memif + ",role=client";
  places.link_b = memif + ",role=server,mac=" + kMac;
  places.host = std::string("[") + kMac + "]";
  return places;
}

// The number of the pair whose memory is on shard i. The thread of that shard polls its domain,
// too: one that nobody polls has a thread of its own, for which there is no CPU, but with few
// shards.
unsigned whose_memory(const Run& run, unsigned i) {
  return run.where == Where::kAcross ? (i + run.shards - 1) % run.shards : i;
}

// Puts per second of all threads together.
double rate(const Run& run, const std::vector<int>& cpus) {
  std::vector<std::unique_ptr<ManagedPair>> pairs;
  for (unsigned i = 0; i < run.shards; ++i)
    pairs.push_back(std::make_unique<ManagedPair>(places_of(run, i)));
  std::atomic<bool> stop{false}, served{false};
  std::vector<std::uint64_t> done(run.shards);
  std::vector<std::thread> threads, servers;
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < run.shards; ++i) {
    threads.emplace_back([&, i] {
      pin_to(cpus[i % cpus.size()]);
      auto* const served = has_two_ends(run.where) ? nullptr : pairs[whose_memory(run, i)].get();
      done[i] = pairs[i]->puts_until(stop, run.window, run.length, served);
    });
    if (!has_two_ends(run.where)) continue;
    servers.emplace_back([&, i] {
      pin_to(cpus[(run.shards + i) % cpus.size()]);
      pairs[i]->serve_until(served);
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(run.seconds));
  stop = true;
  for (auto& thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  served = true;
  for (auto& thread : servers) thread.join();
  std::uint64_t sum = 0;
  for (const auto puts : done) sum += puts;
  return static_cast<double>(sum) / took.count();
}

// False: there are too few CPUs for what it prints.
bool measure(unsigned shards, const Place& place, double seconds, const std::vector<int>& cpus) {
  constexpr std::uint32_t kWindow = 64;
  constexpr std::size_t kSmall = 8, kLarge = 8192;
  const auto small = rate({shards, place.where, kWindow, kSmall, seconds}, cpus);
  const auto large = rate({shards, place.where, kWindow, kLarge, seconds}, cpus);
  const auto alone = rate({shards, place.where, 1, kSmall, seconds}, cpus);
  const bool fits = shards * place.threads <= cpus.size();
  std::printf("shards %2u %-6s %9.0f puts/s of 8 bytes, %7.0f MB/s, %9.0f puts/s one at a time%s\n",
              shards, place.name, small, large * kLarge / 1e6, alone,
              fits ? "" : "  (threads share CPUs)");
  return fits;
}

int run(int argc, char** argv) {
  double seconds = 1;
  std::string only;
  std::vector<unsigned> all{1, 2, 4, 8};
  constexpr const char* kUsage =
      "usage: stp-scale [--seconds S] [--shards 1..16] [--place apart|across|wire|udp]\n";
  hold_to(kUsage, argc, argv);
  for (int i = 1; i < argc; i += 2) {
    const auto name = std::string(argv[i]);
    const auto value = i + 1 < argc ? number_of(argv[i + 1]) : 0;
    if (name == "--seconds" && value > 0) {
      seconds = value;
    } else if (name == "--shards" && value >= 1 && value <= 16) {
      all = {static_cast<unsigned>(value)};
    } else if (name == "--place" && i + 1 < argc && has_place(argv[i + 1])) {
      only = argv[i + 1];
    } else {
      refuse(argv[0], name + ": its value is missing or wrong", kUsage);
    }
  }
  const auto cpus = usable_cpus();
  std::printf("%zu CPUs\n", cpus.size());
  std::string missing;
  for (const auto shards : all) {
    for (const auto& place : kPlaces) {
      if (shards == 1 && place.where == Where::kAcross) continue;
      if (!only.empty() && only != place.name) continue;
      if (!measure(shards, place, seconds, cpus))
        missing += "\n  " + std::to_string(shards) + ' ' + place.name + ": " +
                   std::to_string(shards * place.threads) + " CPUs are needed";
    }
  }
  if (!missing.empty())
    std::printf("How these scale could not be measured with %zu CPUs:%s\n", cpus.size(),
                missing.c_str());
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
