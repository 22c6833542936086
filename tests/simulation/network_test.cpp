// SPDX-License-Identifier: BSD-3-Clause
// Wires and the switch: the effects of a simulated network on frames.
#include <gtest/gtest.h>

#include <algorithm>

#include "tools/sim/network.h"
#include "tools/sim/simulation.h"

namespace stp::sim {
namespace {

constexpr std::size_t kFrameSize = 1000;

Run new_run() {
  return {{}, {nullptr, nullptr}, {}, Dice(1)};
}

// Sends `count` frames one after the other and records the numbers of those that arrive.
struct Line {
  explicit Line(const Faults& faults)
      : run(new_run()), wire(run, {}, faults, [this](const Frame& frame) {
          arrived.push_back(std::to_integer<int>(frame.back()));
          times.push_back(run.now());
        }) {}
  void send(int count) {
    for (int i = 0; i < count; ++i) {
      Frame frame(kFrameSize);
      frame.back() = static_cast<std::byte>(i);
      wire.send(
          kFrameSize, [frame] { return frame; }, [] {});
      while (wire.busy()) run.clock.step();
    }
    while (run.clock.step()) {
    }
  }
  Run run;
  Wire wire;
  std::vector<int> arrived;
  std::vector<Time> times;
};

TEST(wire, carries_frames_at_its_rate_in_order) {
  Line line({});
  const auto begin = line.run.now();
  line.send(100);
  EXPECT_EQ(line.arrived.size(), 100U);
  EXPECT_TRUE(std::is_sorted(line.arrived.begin(), line.arrived.end()));
  EXPECT_EQ(line.times.back() - begin, 100 * line.wire.duration(kFrameSize) + LinkConfig{}.latency);
}

TEST(wire, delay_holds_up_what_comes_behind) {
  Line line({.delay = kAlways / 4, .delay_by = kMillisecond});
  line.send(100);
  EXPECT_EQ(line.arrived.size(), 100U);
  EXPECT_TRUE(std::is_sorted(line.arrived.begin(), line.arrived.end()));
}

TEST(wire, loses_duplicates_and_reorders_as_often_as_it_is_told) {
  Line lossy({.loss = kAlways / 2});
  lossy.send(200);
  EXPECT_GT(lossy.arrived.size(), 50U);
  EXPECT_LT(lossy.arrived.size(), 150U);
  Line doubled({.duplicate = kAlways});
  doubled.send(100);
  EXPECT_EQ(doubled.arrived.size(), 200U);
  Line mixed({.reorder = kAlways / 2, .reorder_by = kMillisecond});
  mixed.send(100);
  EXPECT_EQ(mixed.arrived.size(), 100U);
  EXPECT_FALSE(std::is_sorted(mixed.arrived.begin(), mixed.arrived.end()));
}

TEST(wire, a_cut_cable_carries_nothing) {
  Line line({});
  line.wire.cut(true);
  line.send(10);
  EXPECT_TRUE(line.arrived.empty());
}

TEST(network_switch, forwards_by_address_and_drops_what_finds_no_room) {
  auto run = new_run();
  Switch hub(run, 5 * kFrameSize);
  std::size_t here = 0, there = 0;
  const auto mac_here = MacAddr::from_u64(1), mac_there = MacAddr::from_u64(2);
  hub.add_port(mac_here, {}, {}, [&](const Frame&) { ++here; });
  hub.add_port(mac_there, {}, {}, [&](const Frame&) { ++there; });
  const auto send = [&](const MacAddr& mac) {
    Frame frame(kFrameSize);
    for (std::size_t i = 0; i < mac.octets.size(); ++i) frame[i] = std::byte{mac.octets[i]};
    hub.forward(frame);
  };
  for (int i = 0; i < 8; ++i) send(mac_here);
  send(mac_there);
  send(MacAddr::from_u64(3));
  while (run.clock.step()) {
  }
  EXPECT_EQ(here, 5U);
  EXPECT_EQ(there, 1U);
  EXPECT_EQ(run.trace.overflows(), 3U);
}

TEST(incast, pacing_keeps_a_switch_port_from_overflowing) {
  const auto paced = play_incast(8, incast_limit());
  EXPECT_TRUE(paced.passed);
  EXPECT_EQ(paced.drops, 0U);
  EXPECT_GE(paced.line_rate, 0.9);
  EXPECT_LE(paced.worst_finish, 1.2);
  const auto unpaced = play_incast(8, 0);
  EXPECT_TRUE(unpaced.passed);
  EXPECT_GT(unpaced.drops, 0U);
}

// protocol: 10.8
TEST(incast, of_256_senders_overflows_no_port) {
  const auto paced = play_incast(256, incast_limit());
  EXPECT_TRUE(paced.passed);
  EXPECT_EQ(paced.drops, 0U);
  EXPECT_GE(paced.line_rate, 0.9);
}

// A limit that may grow beyond what the port holds: each sender can make it overflow once.
// protocol: 10.24
TEST(incast, of_256_senders_loses_little_where_the_limit_may_grow) {
  const auto paced = play_incast(256, incast_limit(), false, std::uint64_t{3} << 20);
  EXPECT_TRUE(paced.passed);
  EXPECT_LT(paced.drops, 256U) << "of 32,768 frames";
  EXPECT_GE(paced.line_rate, 0.9);
}

// They want more CTS than one user may have held besides those of each connection.
// protocol: 10.8, 13.9
TEST(incast, of_256_senders_overflows_no_port_with_a_window_for_each_path) {
  const auto paced = play_incast(256, incast_limit(), true);
  EXPECT_TRUE(paced.passed);
  EXPECT_EQ(paced.drops, 0U);
  EXPECT_GE(paced.line_rate, 0.9);
}

// protocol: 10.22
TEST(lossy, frames_that_only_fall_behind_are_hardly_sent_twice) {
  const auto clean = play_lossy({}, 1);
  for (const auto by : {20 * kMicrosecond, 200 * kMicrosecond}) {
    const auto late = play_lossy({.reorder = kAlways / 10, .reorder_by = by}, 1);
    ASSERT_TRUE(late.passed);
    EXPECT_LE(static_cast<double>(late.bytes), 1.02 * static_cast<double>(clean.bytes)) << by;
  }
}

// protocol: 10.10, 10.22
TEST(lossy, one_percent_of_loss_costs_at_most_five_percent_more_bytes_and_a_tenth_of_the_rate) {
  const auto clean = play_lossy({}, 1);
  ASSERT_TRUE(clean.passed);
  // An average, because a single run may by chance lose more of the most expensive frames.
  constexpr std::uint64_t kRuns = 8;
  std::uint64_t bytes = 0;
  double rate = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    const auto lossy = play_lossy(kOnePercent, seed);
    ASSERT_TRUE(lossy.passed);
    EXPECT_GT(lossy.bytes, clean.bytes);
    bytes += lossy.bytes;
    rate += lossy.goodput;
  }
  EXPECT_GE(rate, 0.9 * kRuns * clean.goodput);
  EXPECT_LE(static_cast<double>(bytes), 1.05 * kRuns * static_cast<double>(clean.bytes));
}

// protocol: 10.10, 10.22, 10.23
TEST(lossy, at_one_percent_of_loss_a_stream_of_writes_needs_at_most_three_percent_more_frames) {
  const auto clean = play_stream({}, 1);
  ASSERT_TRUE(clean.passed);
  constexpr int kRuns = 3;
  StreamResult all;
  for (int seed = 1; seed <= kRuns; ++seed) {
    const auto lossy = play_stream(kOnePercent, seed);
    ASSERT_TRUE(lossy.passed);
    all.frames += lossy.frames;
    all.bytes += lossy.bytes;
    all.goodput += lossy.goodput;
  }
  EXPECT_LE(all.frames, 1.03 * kRuns * clean.frames);
  EXPECT_LE(all.bytes, 1.02 * kRuns * clean.bytes);
  EXPECT_GE(all.goodput, 0.97 * kRuns * clean.goodput);
}

// protocol: 10.14, 10.15
TEST(lossy, a_host_that_is_not_scheduled_is_not_made_to_send_everything_twice) {
  const auto clean = play_lossy({}, 1);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const auto sender = play_lossy({}, seed, {}, kBusyCore);
    const auto both = play_lossy({}, seed, kBusyCore, kBusyCore);
    ASSERT_TRUE(sender.passed && both.passed);
    EXPECT_LE(static_cast<double>(sender.bytes), 1.01 * static_cast<double>(clean.bytes));
    EXPECT_LE(static_cast<double>(both.bytes), 1.01 * static_cast<double>(clean.bytes));
  }
}

// protocol: 10.1
TEST(lossy, everything_completes_though_a_tenth_is_lost_and_a_tenth_reordered) {
  const auto result = play_lossy(kTenTenFive, 1);
  EXPECT_TRUE(result.passed);
  EXPECT_GT(result.goodput, 0.0);
}

}  // namespace
}  // namespace stp::sim
