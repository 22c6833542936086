// SPDX-License-Identifier: BSD-3-Clause
// The cost of the engine on one core, without a link: frames are copied from Node to Node, or not
// sent. Also the cost of the managed API above it, on the loop. Prints ratios of the figures at the
// end; nothing here passes or fails.
#include <benchmark/benchmark.h>

#include <cstring>
#include <map>
#include <string>

#include "stp/node/objects.h"
#include "tests/bench/cache_control.h"
#include "tests/bench/managed_pair.h"
#include "tests/bench/many_connections.h"
#include "tests/bench/put_pair.h"
#include "tools/sim/live_bytes.h"

namespace stp::bench {
namespace {

// Receives 8-byte Puts on `range(1)` of `range(0)` connections, in an order that a prefetcher
// cannot predict. Growth with range(1) is due to cache misses, growth with range(0) to the engine.
void receive_put(benchmark::State& state) {
  const auto connections = static_cast<std::size_t>(state.range(0));
  const auto active = static_cast<std::size_t>(state.range(1));
  ManyConnections many(connections);
  std::vector<std::vector<std::byte>> frames;
  for (std::size_t i = 0; i < active; ++i) {
    const auto which = i * 40'507 % connections;
    many.open_region(which);
    frames.push_back(many.put(which, 0));
  }
  std::uint32_t round = 0;
  std::size_t next = 0;
  for (auto _ : state) {
    auto& frame = frames[next];
    ManyConnections::set_b_num(frame, round);
    const Bytes bytes(frame);
    many.node().receive({&bytes, 1}, many.now());
    if (++next == active) next = 0, ++round;
  }
  const auto& counters = many.node().counters();
  if (counters.get(Counter::kRxBlocks) != static_cast<std::uint64_t>(state.iterations()))
    state.SkipWithError("Puts were dropped");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(receive_put)
    ->ArgNames({"connections", "active"})
    ->Args({1, 1})
    ->Args({1'000, 1})
    ->Args({60'000, 1})
    ->Args({1'000, 1'000})
    ->Args({60'000, 1'000})
    ->Args({60'000, 60'000});

// The same with one connection, plus the cache misses of `range(0)` connections.
void receive_put_and_miss(benchmark::State& state) {
  const auto connections = static_cast<std::size_t>(state.range(0));
  CacheControl control(connections);
  ManyConnections one(1);
  one.open_region(0);
  auto frame = one.put(0, 0);
  std::uint32_t b_num = 0;
  std::size_t next = 0;
  for (auto _ : state) {
    ManyConnections::set_b_num(frame, b_num++);
    const Bytes bytes(frame);
    one.node().receive({&bytes, 1}, one.now());
    control.touch(next);
    if (++next == connections) next = 0;
  }
  benchmark::DoNotOptimize(control.found());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(receive_put_and_miss)->ArgName("connections")->Arg(60'000);

void idle_connection(benchmark::State& state) {
  const auto connections = static_cast<std::size_t>(state.range(0));
  std::size_t cost = 0;
  for (auto _ : state) {
    const auto before = test::live_bytes();
    ManyConnections many(connections);
    cost = test::live_bytes() - before - many.channel_bytes();
  }
  state.counters["bytes_each"] = static_cast<double>(cost) / static_cast<double>(connections);
}
BENCHMARK(idle_connection)->Arg(1'000)->Arg(60'000)->Iterations(1)->Unit(benchmark::kMillisecond);

// Sends Blocks of `range(0)` bytes from user to user through both Nodes, in one thread, in bursts.
void node_to_node(benchmark::State& state) {
  const auto length = static_cast<std::uint32_t>(state.range(0));
  PutPair pair;
  std::int64_t blocks = 0;
  for (auto _ : state) blocks += pair.put_burst(length);
  if (!pair.arrived(length)) state.SkipWithError("the bytes are not there");
  state.SetItemsProcessed(blocks);
  state.SetBytesProcessed(blocks * state.range(0));
}
BENCHMARK(node_to_node)->ArgName("bytes")->Arg(8)->Arg(8'192)->Arg(65'536);

// Copies the same bytes between the same places with memcpy: the lower bound for any protocol.
void plain_copy(benchmark::State& state) {
  const auto length = static_cast<std::size_t>(state.range(0));
  test::Buffers from(13, 16), to(13, 16);
  std::size_t at = 0;
  for (auto _ : state) {
    std::memcpy(to.data() + at, from.data() + at, length);
    benchmark::ClobberMemory();
    at = (at + std::max(length, std::size_t{8192})) % from.size();
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(plain_copy)->ArgName("bytes")->Arg(8)->Arg(8'192)->Arg(65'536);

// Sends a message there and one back through the managed API, with both ends in this thread.
void managed_round_trip(benchmark::State& state) {
  ManagedPair pair;
  for (auto _ : state) pair.round_trip(static_cast<std::size_t>(state.range(0)));
}
BENCHMARK(managed_round_trip)->ArgName("bytes")->Arg(64)->Arg(4'080)->Arg(65'536)->UseRealTime();

// A put through the managed API, until its completion.
void managed_put(benchmark::State& state) {
  ManagedPair pair;
  for (auto _ : state) pair.put(static_cast<std::size_t>(state.range(0)));
}
BENCHMARK(managed_put)->ArgName("bytes")->Arg(64)->Arg(4'080)->Arg(65'536)->UseRealTime();

// Prints the usual table and then the ratios of the figures.
class Ratios : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const auto& run : runs) {
      const auto items = run.counters.find("items_per_second");
      times_[run.benchmark_name()] =
          items == run.counters.end() ? run.GetAdjustedCPUTime() : 1e9 / items->second.value;
    }
  }
  void Finalize() override {
    ratio("1,000 connections : 1", "receive_put/connections:1000/active:1", kOne);
    ratio("60,000 connections : 1", "receive_put/connections:60000/active:1", kOne);
    ratio("60,000 : 1,000, each with 1,000 active", "receive_put/connections:60000/active:1000",
          "receive_put/connections:1000/active:1000");
    ratio("60,000 active : 1, cache misses included", "receive_put/connections:60000/active:60000",
          kOne);
    ratio("60,000 active : 1 and the misses of 60,000",
          "receive_put/connections:60000/active:60000", "receive_put_and_miss/connections:60000");
    ratio("8 KiB Node to Node : memcpy", "node_to_node/bytes:8192", "plain_copy/bytes:8192");
    ratio("64 KiB Node to Node : memcpy", "node_to_node/bytes:65536", "plain_copy/bytes:65536");
    GetOutputStream() << "sizeof(Vc) " << sizeof(Vc) << ", of a channel with 64 Slots "
                      << ChannelGeometry{64, 64}.size() << " bytes\n";
  }

 private:
  static constexpr const char* kOne = "receive_put/connections:1/active:1";
  void ratio(const char* what, const char* a, const char* b) {
    if (!times_.contains(a) || !times_.contains(b)) return;
    GetOutputStream() << "ratio " << times_[a] / times_[b] << "  " << what << '\n';
  }
  std::map<std::string, double> times_;  // of an item, in nanoseconds
};

}  // namespace
}  // namespace stp::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  stp::bench::Ratios reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
}
