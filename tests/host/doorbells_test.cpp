// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "libst/ipc/client_page.h"

namespace stp::host {
namespace {

std::vector<std::uint32_t> collect(ipc::Doorbells& bells, std::uint32_t channels) {
  std::vector<std::uint32_t> rung;
  ipc::Doorbells::Progress all;
  bells.collect(channels, all, [&](std::uint32_t channel) { rung.push_back(channel); });
  return rung;
}

TEST(Doorbells, EveryBellRungIsCollectedOnce) {
  const auto bells = std::make_unique<ipc::Doorbells>();
  EXPECT_FALSE(bells->any());
  for (const auto channel : {0U, 63U, 64U, 4'095U, 4'096U, 65'535U, 64U}) bells->ring(channel);
  EXPECT_TRUE(bells->any());
  EXPECT_EQ(collect(*bells, ipc::kMaxChannels),
            (std::vector<std::uint32_t>{0, 63, 64, 4'095, 4'096, 65'535}));
  EXPECT_FALSE(bells->any());
  EXPECT_TRUE(collect(*bells, ipc::kMaxChannels).empty());
}

// Who visits them can look at all of them first.
TEST(Doorbells, SeveralThatAreVisitedNextAreToldBefore) {
  const auto bells = std::make_unique<ipc::Doorbells>();
  for (const auto channel : {5U, 64U, 66U, 127U}) bells->ring(channel);
  std::vector<std::uint32_t> told, visited;
  ipc::Doorbells::Progress all;
  const auto visit = [&](std::uint32_t channel) { visited.push_back(channel); };
  const auto ahead = [&](std::uint32_t first, std::uint64_t bits) {
    EXPECT_EQ(visited, std::vector<std::uint32_t>{5}) << "before any of them";
    for (std::uint32_t n = 0; n < 64; ++n)
      if ((bits >> n & 1) != 0) told.push_back(first + n);
  };
  EXPECT_TRUE(bells->collect(ipc::kMaxChannels, all, visit, ahead));
  EXPECT_EQ(told, (std::vector<std::uint32_t>{64, 66, 127})) << "a single one is visited at once";
  EXPECT_EQ(visited, (std::vector<std::uint32_t>{5, 64, 66, 127}));
}

TEST(Doorbells, BellsOfChannelsThatDoNotExistAreIgnored) {
  const auto bells = std::make_unique<ipc::Doorbells>();
  for (std::uint32_t channel = 0; channel < ipc::kMaxChannels; ++channel) bells->ring(channel);
  EXPECT_EQ(collect(*bells, 3), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_TRUE(collect(*bells, 0).empty());
}

// A client that rings all its bells again and again costs a turn no more than `most`, and silences
// none of its own.
TEST(Doorbells, ATurnCollectsABoundedNumberAndTheOthersComeNext) {
  constexpr std::uint32_t kChannels = 10'000, kMost = 64;
  const auto bells = std::make_unique<ipc::Doorbells>();
  ipc::Doorbells::Progress progress{.most = kMost, .leaf = 0};
  std::vector<unsigned> visits(kChannels);
  const std::uint32_t turns = kChannels / kMost + 2;
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    for (std::uint32_t channel = 0; channel < kChannels; ++channel) bells->ring(channel);
    std::uint32_t collected = 0;
    EXPECT_TRUE(bells->collect(kChannels, progress, [&](std::uint32_t channel) {
      ++visits.at(channel);
      ++collected;
    }));
    EXPECT_LT(collected, kMost + 64);
    EXPECT_TRUE(bells->any()) << "whoever sleeps now would miss the others";
  }
  for (std::uint32_t channel = 0; channel < kChannels; ++channel)
    EXPECT_GE(visits[channel], 1U) << channel;
  for (std::uint32_t turn = 0; turn < turns; ++turn)
    bells->collect(kChannels, progress, [](std::uint32_t) {});
  EXPECT_FALSE(bells->any());
}

std::vector<std::uint32_t> collect_own(ipc::Doorbells& bells,
                                       const std::vector<std::uint64_t>& own) {
  std::vector<std::uint32_t> rung;
  bells.collect(own, [&](std::uint32_t channel) { rung.push_back(channel); });
  return rung;
}

TEST(Doorbells, WhoeverCollectsItsOwnLeavesThoseOfOthersRinging) {
  const auto bells = std::make_unique<ipc::Doorbells>();
  for (const auto channel : {1U, 2U, 70U, 5'000U}) bells->ring(channel);
  std::vector<std::uint64_t> mine(5'000 / 64 + 1), others(2);
  mine[0] = 1U << 2;
  mine[5'000 / 64] = std::uint64_t{1} << 5'000 % 64;
  others[0] = 1U << 1;
  others[1] = 1U << 70 % 64;
  EXPECT_EQ(collect_own(*bells, mine), (std::vector<std::uint32_t>{2, 5'000}));
  EXPECT_TRUE(collect_own(*bells, mine).empty());
  EXPECT_EQ(collect_own(*bells, others), (std::vector<std::uint32_t>{1, 70}));
  EXPECT_FALSE(bells->any());
  bells->ring(2);
  EXPECT_EQ(collect_own(*bells, mine), (std::vector<std::uint32_t>{2}));
}

// A collector that silences the last bell of its word must not silence one that rings meanwhile.
TEST(Doorbells, NoBellThatRingsWhileOthersAreCollectedIsLost) {
  constexpr std::uint32_t kRounds = 300;
  const auto bells = std::make_unique<ipc::Doorbells>();
  std::atomic<std::uint32_t> heard[2]{};
  std::atomic<bool> done{false};
  std::vector<std::thread> collectors;
  for (std::uint32_t id = 0; id < 2; ++id)
    collectors.emplace_back([&, id] {
      std::vector<std::uint64_t> const own{std::uint64_t{1} << id};
      while (!done) bells->collect(own, [&](std::uint32_t) { heard[id].fetch_add(1); });
    });
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const auto id = round % 2;
    const auto before = heard[id].load();
    bells->ring(id);
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (heard[id].load() == before && std::chrono::steady_clock::now() < patience)
      std::this_thread::yield();
    ASSERT_EQ(heard[id].load(), before + 1) << round;
  }
  done = true;
  for (auto& collector : collectors) collector.join();
}

}  // namespace
}  // namespace stp::host
