// SPDX-License-Identifier: BSD-3-Clause
// The simulator itself: a seed determines the run, and faults are detected.
#include <gtest/gtest.h>

#include <stdexcept>

#include "stp/wire/header.h"
#include "tools/sim/simulation.h"

namespace stp::sim {
namespace {

constexpr std::uint64_t kSeeds = 20;

const Profile& profile(const char* name) {
  const auto* const found = find_profile(name);
  if (found == nullptr) throw std::invalid_argument(name);
  return *found;
}

// Counts the failed runs of profile `name`, with each scenario changed by `change`.
unsigned failures(const char* name, void (*change)(Scenario&)) {
  unsigned failed = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Dice dice(seed);
    auto scenario = draw_scenario(profile(name), dice);
    change(scenario);
    failed += simulate(scenario, dice).failures.empty() ? 0 : 1;
  }
  return failed;
}

TEST(simulation, same_seed_gives_the_same_run) {
  for (const auto* const name : {"mixed", "reboot", "abrupt", "liar", "level0", "connectionless"}) {
    const auto first = simulate(profile(name), 7), second = simulate(profile(name), 7);
    EXPECT_EQ(first.hash, second.hash) << name;
    EXPECT_EQ(first.frames, second.frames) << name;
    EXPECT_EQ(first.simulated, second.simulated) << name;
    EXPECT_NE(first.hash, simulate(profile(name), 8).hash) << name;
  }
}

TEST(simulation, several_nodes_behind_an_address_hand_frames_over) {
  std::uint64_t handed_over = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto first = simulate(profile("mixed"), seed, {}, 4);
    EXPECT_TRUE(first.failures.empty()) << seed << ": " << first.failures.front();
    EXPECT_EQ(first.hash, simulate(profile("mixed"), seed, {}, 4).hash) << seed;
    handed_over += first.handed_over;
  }
  EXPECT_GT(handed_over, 0U);
}

TEST(simulation, a_file_that_cannot_be_written_is_told_of) {
  Watch watch;
  watch.file = PcapngFile::create("/dev/full");
  ASSERT_NE(watch.file, nullptr);
  EXPECT_EQ(simulate(profile("mixed"), 3, std::move(watch)).file_error, -ENOSPC);
  EXPECT_EQ(simulate(profile("mixed"), 3).file_error, 0);
}

TEST(simulation, watching_a_run_changes_nothing) {
  const auto path = ::testing::TempDir() + "simulation.pcapng";
  Watch watch;
  watch.file = PcapngFile::create(path);
  ASSERT_NE(watch.file, nullptr);
  watch.text = std::tmpfile();
  auto* const text = watch.text;
  const auto watched = simulate(profile("mixed"), 3, std::move(watch));
  EXPECT_EQ(watched.file_error, 0);
  EXPECT_EQ(watched.hash, simulate(profile("mixed"), 3).hash);
  EXPECT_GT(std::ftell(text), 0);
  std::fclose(text);
  auto* const file = std::fopen(path.c_str(), "rb");
  std::fseek(file, 0, SEEK_END);
  EXPECT_GT(static_cast<std::uint64_t>(std::ftell(file)), watched.bytes);
  std::fclose(file);
  std::remove(path.c_str());
}

TEST(simulation, workloads_use_every_operation_of_the_protocol) {
  OpCounts seen{};
  for (std::uint64_t seed = 1; seed <= 3 * kSeeds; ++seed) {
    const auto result = simulate(profile("clean"), seed);
    for (std::size_t op = 0; op < seen.size(); ++op) seen[op] += result.ops[op];
  }
  for (std::size_t op = 0; op < seen.size(); ++op) {
    const auto* const name = wire::short_name(static_cast<wire::Op>(op));
    if (name != nullptr) {
      EXPECT_GT(seen[op], 0U) << name;
    }
  }
}

TEST(simulation, wrong_bytes_are_noticed) {
  EXPECT_GT(failures("corrupt",
                     [](Scenario& s) {
                       s.faults.corrupt = kAlways / 5;
                       for (auto& host : s.hosts) host.endpoint.checksum = false;
                     }),
            kSeeds / 2);
}

TEST(simulation, wrong_bytes_at_an_endpoint_are_noticed) {
  EXPECT_GT(failures("connectionless",
                     [](Scenario& s) {
                       s.faults = {};
                       s.faults.corrupt = kAlways / 5;
                       for (auto& host : s.hosts) {
                         host.endpoint.checksum = false;
                         host.lies = 0;
                       }
                     }),
            kSeeds / 2);
}

TEST(simulation, operations_that_fail_without_a_reason_are_noticed) {
  EXPECT_EQ(failures("clean", [](Scenario& s) { s.faults.loss = kAlways; }), kSeeds);
  EXPECT_EQ(failures("connectionless",
                     [](Scenario& s) {
                       s.faults.loss = kAlways;
                       s.reliable = true;
                     }),
            kSeeds);
}

TEST(simulation, waits_without_an_end_are_noticed) {
  // Without recovery a lost Block is never requested again.
  EXPECT_GT(failures("level0",
                     [](Scenario& s) {
                       s.faults = {};
                       s.faults.loss = kAlways / 10;
                       for (auto& host : s.hosts) host.endpoint.recover = false;
                     }),
            kSeeds / 2);
}

}  // namespace
}  // namespace stp::sim
