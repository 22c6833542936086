// SPDX-License-Identifier: BSD-3-Clause
// The cost of a frame does not grow with the number of connections, except for cache misses.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "stp/wire/big_endian.h"
#include "tests/bench/cache_control.h"
#include "tests/bench/many_connections.h"

namespace stp::bench::frame_cost_test {
namespace {

constexpr std::size_t kMany = 60'000;
constexpr int kRounds = 5;

// The time of the fastest round: disturbances on a busy machine only add time.
template <typename Round>
double quickest(Round&& round) {
  auto best = std::chrono::duration<double>::max();
  for (int i = 0; i < kRounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    round(static_cast<std::uint32_t>(i));
    best = std::min<std::chrono::duration<double>>(best, std::chrono::steady_clock::now() - begin);
  }
  return best.count();
}

// Receives kMany Puts on `active` of `connections` connections in turn, and calls `also` with each.
template <typename Also>
double receive_puts(std::size_t connections, std::size_t active, Also&& also) {
  ManyConnections many(connections);
  std::vector<ManyConnections::Frame> frames;
  for (std::size_t i = 0; i < active; ++i) {
    const auto which = i * 40'507 % connections;
    many.open_region(which);
    frames.push_back(many.put(which, 0));
  }
  std::uint32_t b_num = 0;
  const auto seconds = quickest([&](std::uint32_t) {
    for (std::size_t i = 0; i < kMany; ++i) {
      auto& frame = frames[i % active];
      ManyConnections::set_b_num(frame, b_num);
      if (i % active == active - 1) ++b_num;
      Bytes const bytes(frame);
      many.node().receive({&bytes, 1}, many.now());
      also(i);
    }
  });
  EXPECT_EQ(many.node().counters().get(Counter::kRxBlocks), std::uint64_t{kMany} * kRounds);
  return seconds;
}

// It measures time, so it is for a machine that does nothing else. stp-bench gives exact figures.
TEST(FrameCost, does_not_grow_with_connections_beyond_the_caches) {
  if (std::getenv("STP_LONG") == nullptr) GTEST_SKIP() << "tools/test --long runs it";
  const auto nothing = [](std::size_t) {};
  const auto one = receive_puts(1, 1, nothing);
  EXPECT_LE(receive_puts(kMany, 1, nothing), 4 * one) << "of which one is active";
  CacheControl control(kMany);
  const auto misses = receive_puts(1, 1, [&](std::size_t i) { control.touch(i); });
  EXPECT_LE(receive_puts(kMany, kMany, nothing), 4 * misses) << "all of them active";
  EXPECT_EQ(control.found(), 0U);
}

// Of so many connections, what the frames of a burst use is fetched ahead, by what is in them.
TEST(FrameCost, a_burst_for_many_connections_may_hold_any_frames) {
  constexpr std::size_t kConnections = 300;
  ManyConnections many(kConnections);
  many.open_region(7);
  many.open_region(8);
  auto stray = many.put(9, 0);
  wire::store16(stray.data() + wire::kEthernetSize + wire::at::kDPort, 0xffff);
  const auto cut = ManyConnections::Frame(stray.begin(), stray.begin() + wire::kEthernetSize + 1);
  for (std::uint32_t b_num = 0; b_num < 2; ++b_num) {
    const std::vector<ManyConnections::Frame> frames{
        many.put(7, b_num), stray, cut, {}, many.no_operation(kConnections - 1), many.put(8, b_num),
        many.put(9, b_num)};
    std::vector<LoopedFrame> burst;
    for (const auto& frame : frames) burst.push_back({.head = Bytes(frame), .attached = {}});
    many.node().receive_apart(burst, many.now());
    EXPECT_EQ(many.node().counters().get(Counter::kRxBlocks), 2 * (b_num + 1));
  }
  ReceivedEntry entry;
  EXPECT_TRUE(many.user(kConnections - 1).receive(entry));
}

}  // namespace
}  // namespace stp::bench::frame_cost_test
