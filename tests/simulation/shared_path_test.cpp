// SPDX-License-Identifier: BSD-3-Clause
// Paths that others use, too: the bottleneck, and the model of TCP that shares
// it.
#include <gtest/gtest.h>

#include <memory>

#include "tools/sim/shared_path.h"

namespace stp::sim::shared_path_test {
namespace {

constexpr std::size_t kPacket = 1'250;  // takes 100 us at 100 Mbit/s
constexpr Time kStep = 100 * kMicrosecond;

struct Path {
  explicit Path(const BottleneckConfig& config)
      : run{{}, {nullptr, nullptr}, {}, Dice(1)}, bottleneck(run, config) {}
  void play_until(Time end) {
    bool over = false;
    run.clock.at(end, [&] { over = true; });
    while (!over) run.clock.step();
  }
  Run run;
  Bottleneck bottleneck;
};

TEST(bottleneck, passes_packets_at_its_rate_in_order_after_its_delay) {
  Path path({});
  const auto begin = path.run.now();
  std::vector<int> arrived;
  std::vector<Time> times;
  for (int i = 0; i < 3; ++i)
    path.bottleneck.send(1, kPacket, [&, i](bool) {
      arrived.push_back(i);
      times.push_back(path.run.now() - begin);
    });
  while (path.run.clock.step()) {
  }
  const auto delay = path.bottleneck.config().delay;
  EXPECT_EQ(arrived, (std::vector{0, 1, 2}));
  EXPECT_EQ(times, (std::vector{delay + kStep, delay + 2 * kStep, delay + 3 * kStep}));
  EXPECT_EQ(path.bottleneck.queueing_delay(),
            kStep);  // the mean of 0, 1 and 2 steps
  EXPECT_EQ(path.bottleneck.bytes_of(1), 3 * kPacket);
  EXPECT_EQ(path.bottleneck.bytes_of(2), 0U);
}

TEST(bottleneck, drops_what_finds_no_room) {
  Path path({.queue = 2 * kPacket});
  int arrived = 0;
  for (int i = 0; i < 5; ++i) path.bottleneck.send(1, kPacket, [&](bool) { ++arrived; });
  while (path.run.clock.step()) {
  }
  EXPECT_EQ(arrived, 3);  // one had left the queue at once
  EXPECT_EQ(path.bottleneck.drops(), 2U);
}

TEST(bottleneck, loses_packets_of_both_directions_by_chance) {
  Path path({.queue = kPacket * 100'000, .loss = kAlways / 100});
  int arrived = 0, lost = 0;
  for (int i = 0; i < 10'000; ++i) {
    path.bottleneck.send(1, kPacket, [&](bool) { ++arrived; });
    lost += path.bottleneck.loses() ? 1 : 0;
  }
  while (path.run.clock.step()) {
  }
  EXPECT_NEAR(arrived, 9'900, 40);
  EXPECT_NEAR(lost, 100, 40);
  EXPECT_EQ(path.bottleneck.drops(), 0U) << "the queue dropped nothing";
}

TEST(bottleneck, fairness_is_one_for_equal_shares_and_small_if_one_has_all) {
  EXPECT_DOUBLE_EQ(fairness({7, 7, 7, 7}), 1);
  EXPECT_DOUBLE_EQ(fairness({7, 0, 0, 0}), 0.25);
}

// What flows of TCP make of a path in the seconds from 10 to 30.
struct Shares {
  double use, fair;
  Time delay;
  std::uint64_t drops;
};
Shares play_cubic(const BottleneckConfig& config, unsigned flows) {
  Path path(config);
  std::vector<std::unique_ptr<Cubic>> all;
  for (unsigned i = 0; i < flows; ++i) {
    all.push_back(std::make_unique<Cubic>(path.run, path.bottleneck, i,
                                          CubicConfig{.way_back = config.delay}));
    path.run.clock.after(i * 100 * kMillisecond, [flow = all.back().get()] { flow->start(); });
  }
  const auto begin = path.run.now();
  path.play_until(begin + 10 * kSecond);
  path.bottleneck.begin_counting();
  path.play_until(begin + 30 * kSecond);
  std::vector<std::uint64_t> shares;
  for (unsigned i = 0; i < flows; ++i) shares.push_back(path.bottleneck.bytes_of(i));
  return {path.bottleneck.use(), fairness(shares), path.bottleneck.queueing_delay(),
          path.bottleneck.drops()};
}

TEST(cubic, fills_a_bottleneck_and_its_queue) {
  const auto alone = play_cubic({.queue = 250'000}, 1);  // of one round trip
  EXPECT_GT(alone.use, 0.95);
  EXPECT_GT(alone.delay, 5 * kMillisecond);
  EXPECT_GT(alone.drops, 0U);
}

TEST(cubic, fills_a_long_path) {
  const auto alone = play_cubic({.delay = 100 * kMillisecond, .queue = 2'500'000}, 1);
  EXPECT_GT(alone.use, 0.9);
}

TEST(cubic, waits_less_in_a_queue_that_drops_early) {
  const BottleneckConfig deep{.queue = 1'250'000};
  auto codel = deep;
  codel.codel = true;
  const auto tail = play_cubic(deep, 1), early = play_cubic(codel, 1);
  EXPECT_GT(early.use, 0.85);
  EXPECT_LT(4 * early.delay, tail.delay);
}

TEST(cubic, flows_share_a_bottleneck) {
  const auto shared = play_cubic({.queue = 250'000}, 4);
  EXPECT_GT(shared.use, 0.95);
  EXPECT_GT(shared.fair, 0.9);
}

// What fills a fast path for some seconds.
TEST(shared, a_write_may_be_longer_than_a_gibibyte) {
  const auto played = play_shared({.bottleneck = {.bits_per_second = 10'000'000'000},
                                   .lasts = kMillisecond,
                                   .length = std::uint64_t{20} << 30});
  EXPECT_EQ(played.failure, "");
  EXPECT_EQ(played.drops, 0U);
}

// Up to 1 MiB of each is on its way. The queue and the path together hold half
// of that.
TEST(shared, writes_end_well_though_the_queue_of_a_router_overflows) {
  const auto played = play_shared(
      {.bottleneck = {.queue = 250'000}, .writes = 2, .lasts = 10 * kSecond, .length = 4 << 20});
  EXPECT_EQ(played.failure, "");
  EXPECT_EQ(played.finished, 2U);
  EXPECT_GT(played.drops, 0U);
}

TEST(shared, writes_whose_window_fits_the_path_lose_nothing) {
  const auto played = play_shared({.bottleneck = {.queue = 250'000},
                                   .max_block = 13,
                                   .cts_window = 32,
                                   .warm_up = kSecond,
                                   .lasts = 2 * kSecond});
  EXPECT_EQ(played.failure, "");
  EXPECT_EQ(played.drops, 0U);
  EXPECT_GT(played.use, 0.9);
}

TEST(shared, each_write_and_each_flow_of_tcp_is_counted) {
  const auto played = play_shared({.bottleneck = {.queue = 250'000},
                                   .writes = 2,
                                   .cubic = 1,
                                   .max_block = 13,
                                   .cts_window = 4,
                                   .warm_up = 5 * kSecond,
                                   .lasts = 5 * kSecond});
  EXPECT_EQ(played.failure, "");
  EXPECT_GT(played.use, 0.9);
  EXPECT_GT(played.fair, 0.99) << "both have the same window";
  EXPECT_GT(played.cubic_share, 1) << "the windows of the writes are small";
  EXPECT_LT(played.cubic_share, 3);
}

// What congestion control makes of a path of 100 Mbit/s and 20 ms, with a queue
// of one round trip.
SharedPath routed(unsigned writes, unsigned cubic) {
  return {.bottleneck = {.queue = 250'000},
          .writes = writes,
          .cubic = cubic,
          .max_block = 13,
          .routed = true,
          .every = 100 * kMillisecond,
          .warm_up = 4 * kSecond,
          .lasts = 2 * kSecond};
}

// protocol: 13.9, 13.10, 13.11
TEST(congestion, one_write_uses_the_path_and_waits_less_than_tcp) {
  const auto write = play_shared(routed(1, 0));
  EXPECT_EQ(write.failure, "");
  EXPECT_GT(write.use, 0.9);
  EXPECT_EQ(write.drops, 0U);
  EXPECT_LT(4 * write.delay, play_cubic({.queue = 250'000}, 1).delay);
}

// Each begins when the earlier ones have filled the queue, and cannot know how
// long the path is.
TEST(congestion, ten_writes_have_equal_shares) {
  const auto writes = play_shared(routed(10, 0));
  EXPECT_EQ(writes.failure, "");
  EXPECT_GT(writes.use, 0.9);
  EXPECT_GT(writes.fair, 0.95);
  EXPECT_LT(writes.delay, 5 * kMillisecond);
}

TEST(congestion, tcp_keeps_its_share) {
  for (const bool codel : {false, true}) {
    auto path = routed(1, 1);
    path.bottleneck.codel = codel;
    const auto both = play_shared(path);
    EXPECT_EQ(both.failure, "");
    EXPECT_GT(both.use, 0.9);
    EXPECT_GT(both.cubic_share, 0.7);
  }
}

// Paths of other rates and lengths, whose queues hold what one round trip
// carries, or at least 60,000 bytes.
SharedPath path_of(std::uint64_t bits_per_second, Time round_trip, unsigned writes,
                   unsigned cubic = 0) {
  auto path = routed(writes, cubic);
  path.bottleneck.bits_per_second = bits_per_second;
  path.bottleneck.delay = round_trip / 2;
  path.bottleneck.queue = std::max<std::size_t>(bits_per_second / 8 * round_trip / kSecond, 60'000);
  path.lasts = 10 * kSecond;
  return path;
}
constexpr std::uint64_t kSlow = 10'000'000, kFast = 1'000'000'000;
constexpr Time kShortTrip = 50 * kMicrosecond, kTrip = 20 * kMillisecond, kLongTrip = 10 * kTrip;

TEST(congestion, a_slow_path_of_any_length_is_used_and_its_queue_is_shorter_than_that_of_tcp) {
  for (const Time round_trip : {kShortTrip, kTrip, kLongTrip}) {
    const auto path = path_of(kSlow, round_trip, 1);
    const auto write = play_shared(path);
    EXPECT_EQ(write.failure, "");
    EXPECT_GT(write.use, 0.9) << round_trip;
    EXPECT_EQ(write.drops, 0U);
    EXPECT_LT(4 * write.delay, play_cubic(path.bottleneck, 1).delay) << round_trip;
  }
}

// A path of STUs of 8 KiB.
SharedPath fast_path(std::uint64_t bits_per_second, Time round_trip, unsigned writes = 1) {
  auto path = path_of(bits_per_second, round_trip, writes);
  path.bottleneck.queue = std::max<std::size_t>(path.bottleneck.queue, 600'000);
  path.max_stu = 13;
  path.max_block = 16;
  path.warm_up = 50 * kMillisecond;
  path.lasts = 20 * kMillisecond;
  return path;
}

TEST(congestion, a_fast_path_is_used) {
  for (const auto& path : {fast_path(kFast, kShortTrip), fast_path(10 * kFast, kShortTrip),
                           fast_path(10 * kFast, kTrip / 10)}) {
    const auto write = play_shared(path);
    EXPECT_EQ(write.failure, "");
    EXPECT_GT(write.use, 0.9) << path.bottleneck.bits_per_second << path.bottleneck.delay;
    EXPECT_EQ(write.drops, 0U);
  }
}

// What comes in a burst waits long before it fills such a path. The limit of bytes and the Slots
// are the usual ones, which held an eighth of it.
// protocol: 13.11, 13.23
TEST(congestion, a_long_fast_path_is_used_though_bursts_wait_before_it_is_full) {
  for (auto path : {fast_path(10 * kFast, kTrip), fast_path(kFast, kLongTrip)}) {
    const auto round_trip = 2 * path.bottleneck.delay;
    path.granted_limit = path.granted_most = 3 << 20;
    path.slots = 192;
    path.bottleneck.codel = true;
    path.max_block = 20;
    path.length = 16 << 20;
    path.at_once = 8;
    path.warm_up = 50 * round_trip;
    path.lasts = 10 * round_trip;
    const auto write = play_shared(path);
    EXPECT_EQ(write.failure, "");
    EXPECT_GT(write.use, 0.9) << round_trip;
    EXPECT_EQ(write.drops, 0U);
  }
}

// The length of its Blocks is fixed when nothing is known of the path.
// protocol: 13.19
TEST(congestion, a_long_write_uses_a_long_path) {
  auto path = path_of(10 * kSlow, 5 * kTrip, 1);
  path.max_block = 20;
  path.warm_up = 3 * kSecond;
  path.lasts = 2 * kSecond;
  const auto write = play_shared(path);
  EXPECT_EQ(write.failure, "");
  EXPECT_GT(write.use, 0.9);
  EXPECT_EQ(write.drops, 0U);
}

// It carries less than a Block in half a minute, after which who receives it
// would give up. protocol: 10.17, 13.19
TEST(congestion, a_long_write_ends_well_on_a_very_slow_path) {
  auto path = path_of(16'000, kTrip, 1);
  path.max_block = 20;
  path.length = 4 << 20;
  path.warm_up = 0;
  path.lasts = 100 * kSecond;
  const auto write = play_shared(path);
  EXPECT_EQ(write.failure, "");
  EXPECT_GT(write.use, 0.9);
}

// Who had much on the way saw the queue empty between the bursts, and took all
// from those who began later. protocol: 13.18
TEST(congestion, writes_share_a_long_fast_path) {
  for (const unsigned writes : {2U, 10U}) {
    auto path = fast_path(kFast, 5 * kTrip, writes);
    path.max_block = 20;
    path.length = 16 << 20;
    path.at_once = 8;
    path.warm_up = 10 * kSecond;
    path.lasts = 2 * kSecond;
    const auto played = play_shared(path);
    EXPECT_EQ(played.failure, "");
    EXPECT_GT(played.use, 0.95) << writes;
    EXPECT_GT(played.fair, 0.95);
    EXPECT_LT(played.delay, 4 * kMillisecond);
    EXPECT_EQ(played.drops, 0U);
  }
}

// The limit of a `udp:` link at an MTU of 1500.
SharedPath with_default_limit(SharedPath path) {
  path.granted_limit = 384 << 10;
  path.granted_most = 2 << 20;
  path.max_block = 17;
  path.cts_window = 256;
  return path;
}

// protocol: 10.24
TEST(unpaced, a_short_queue_of_a_slow_path_loses_nothing) {
  for (const auto rate : {10 * kSlow, kFast}) {
    auto path = with_default_limit(path_of(rate, kShortTrip, 1));
    path.routed = false;
    path.bottleneck.queue = 500'000;  // a bit more than the limit with its headers
    path.warm_up = 0;
    path.lasts = kSecond / 2;
    const auto write = play_shared(path);
    EXPECT_EQ(write.failure, "");
    EXPECT_GT(write.use, 0.9) << rate;
    EXPECT_EQ(write.drops, 0U) << rate;
  }
}

// Nothing waits long there, so only losses tell.
// protocol: 10.24
TEST(unpaced, a_short_queue_of_a_fast_path_loses_little) {
  auto path = with_default_limit(path_of(20 * kFast, kShortTrip, 1));
  path.routed = false;
  path.bottleneck.queue = 600'000;
  path.warm_up = 0;
  path.lasts = kSecond / 5;
  const auto write = play_shared(path);
  EXPECT_EQ(write.failure, "");
  EXPECT_GT(write.use, 0.9);
  EXPECT_LT(write.drops, 3'000U) << "the limit was too high once";
}

// The queue holds less than what hosts are allowed to delay.
// protocol: 13.11, 13.12
TEST(congestion, a_fast_path_with_a_short_queue_is_used) {
  auto path = fast_path(100 * kFast, kShortTrip);
  path.warm_up = 30 * kMillisecond;
  path.lasts = 5 * kMillisecond;
  const auto write = play_shared(path);
  EXPECT_EQ(write.failure, "");
  EXPECT_GT(write.use, 0.9);
  EXPECT_EQ(write.drops, 0U);
}

// Those that begin later find a queue, and take it for a part of the path until
// they look again. protocol: 13.11
TEST(congestion, ten_writes_share_a_fast_path) {
  auto path = fast_path(10 * kFast, kShortTrip, 10);
  path.every = 5 * kMillisecond;
  path.warm_up = 150 * kMillisecond;
  path.lasts = 120 * kMillisecond;  // in 20 ms chance decides: 0.82 to 0.99
  const auto writes = play_shared(path);
  EXPECT_EQ(writes.failure, "");
  EXPECT_GT(writes.use, 0.9);
  EXPECT_GT(writes.fair, 0.95);
}

// CoDel drops what makes a queue of a few milliseconds last. TCP alone uses
// less than nine tenths. protocol: 13.11
TEST(congestion, a_long_path_behind_codel_is_used_and_shared) {
  for (const unsigned cubic : {0U, 1U}) {
    auto path = path_of(kSlow, kLongTrip, 1, cubic);
    path.bottleneck.codel = true;
    // The flow of TCP loses a packet each few seconds, and takes as long to
    // grow again.
    path.warm_up = 20 * kSecond;
    path.lasts = cubic != 0 ? 80 * kSecond : 20 * kSecond;
    const auto write = play_shared(path);
    EXPECT_EQ(write.failure, "");
    EXPECT_GT(write.use, 0.9);
    if (cubic != 0) {
      EXPECT_GT(write.cubic_share, 0.7);
    }
  }
}

TEST(congestion, ten_writes_share_a_slow_path_behind_any_queue) {
  for (const bool codel : {false, true}) {
    auto path = path_of(kSlow, kTrip, 10);
    path.bottleneck.codel = codel;
    const auto writes = play_shared(path);
    EXPECT_EQ(writes.failure, "");
    EXPECT_GT(writes.use, 0.9);
    EXPECT_GT(writes.fair, 0.95);
  }
}

// Behind CoDel that marks what it would drop, questions of senders (13.16) are
// all that is lost. protocol: 13.22
TEST(congestion, what_is_marked_need_not_be_lost) {
  SharedResult results[2];
  for (const bool marks : {false, true}) {
    auto path = path_of(kSlow, kTrip, 10);
    path.bottleneck.codel = true;
    path.bottleneck.marks = marks;
    path.warm_up = 10 * kSecond;
    results[marks ? 1 : 0] = play_shared(path);
  }
  const auto& [drops, marks] = results;
  EXPECT_EQ(marks.failure, "");
  EXPECT_GT(marks.marks, 100U);
  EXPECT_GT(drops.dropped_bytes, 100'000U);
  EXPECT_LT(5 * marks.dropped_bytes, drops.dropped_bytes);
  EXPECT_GT(marks.use, 0.9);
  EXPECT_GT(marks.fair, 0.9);
}

// The two pieces of each sender are more than the queue that the router allows.
// protocol: 13.22
TEST(congestion, ten_writes_use_a_long_path_that_marks) {
  auto path = path_of(kSlow, kLongTrip, 10);
  path.bottleneck.codel = path.bottleneck.marks = true;
  path.warm_up = 10 * kSecond;
  const auto writes = play_shared(path);
  EXPECT_EQ(writes.failure, "");
  EXPECT_GT(writes.marks, 10U);
  EXPECT_GT(writes.use, 0.92);
  EXPECT_GT(writes.fair, 0.95);
}

TEST(congestion, tcp_keeps_its_share_of_a_slow_path) {
  for (const Time round_trip : {kTrip, kLongTrip}) {
    const auto both = play_shared(path_of(kSlow, round_trip, 1, 1));
    EXPECT_EQ(both.failure, "");
    EXPECT_GT(both.use, 0.9);
    EXPECT_GT(both.cubic_share, 0.7);
  }
}

// A receiver that does not pace, or wants to hurt others on the way.
// protocol: 13.16
TEST(congestion, a_receiver_that_grants_everything_leaves_tcp_its_share) {
  for (const Time delay : {25 * kMicrosecond, 10 * kMillisecond}) {
    for (const bool codel : {false, true}) {
      SharedPath path{.bottleneck = {.bits_per_second = 10'000'000,
                                     .delay = delay,
                                     .queue = 60'000,
                                     .codel = codel},
                      .cubic = 1,
                      .max_block = 16,
                      .cts_window = 256,
                      .routed = true,
                      .greedy = true,
                      .every = 100 * kMillisecond,
                      .warm_up = 10 * kSecond,
                      .lasts = 20 * kSecond};
      const auto both = play_shared(path);
      EXPECT_EQ(both.failure, "");
      EXPECT_GT(both.use, 0.9);
      EXPECT_GT(both.cubic_share, 0.7);
    }
  }
}

// TCP alone does not use all of such a path either.
// protocol: 13.16
TEST(congestion, a_receiver_that_grants_everything_leaves_tcp_its_share_of_a_long_path) {
  auto path = path_of(kSlow, kLongTrip, 1, 1);
  path.bottleneck.codel = path.greedy = true;
  path.max_block = 16;
  path.cts_window = 256;
  path.warm_up = path.lasts = 20 * kSecond;
  const auto both = play_shared(path);
  EXPECT_EQ(both.failure, "");
  EXPECT_GT(both.use, 0.8);
  EXPECT_GT(both.cubic_share, 0.7);
}

// The path takes 4 ms to pass one Block of each write, and 50 us without a
// queue.
TEST(congestion, a_short_and_slow_path_is_shared_too) {
  auto path = routed(10, 0);
  path.bottleneck.delay = 25 * kMicrosecond;
  const auto writes = play_shared(path);
  EXPECT_EQ(writes.failure, "");
  EXPECT_GT(writes.use, 0.9);
  EXPECT_GT(writes.fair, 0.95);
}

// A round trip carries less than a piece of each, so it takes many until a
// Block is complete. protocol: 13.12
TEST(congestion, long_writes_lose_little_on_a_short_and_slow_path) {
  auto path = path_of(10 * kSlow, kShortTrip, 10);
  path.max_block = 20;
  path.lasts = 2 * kSecond;
  const auto writes = play_shared(path);
  EXPECT_EQ(writes.failure, "");
  EXPECT_GT(writes.use, 0.9);
  EXPECT_LT(writes.drops, 1'800U) << "2,828 if only a repeated CTS counts as a loss";
}

// protocol: 13.12
TEST(congestion, a_queue_that_is_too_short_for_all_is_used_well) {
  auto path = routed(10, 0);
  path.bottleneck.queue = 30'000;
  const auto writes = play_shared(path);
  EXPECT_EQ(writes.failure, "");
  EXPECT_GT(writes.use, 0.9);
}

// A path of 0.1 ms, as a `udp:` link at an MTU of 1500 grants.
SharedPath short_path(Rate loss) {
  auto path = with_default_limit(path_of(10 * kFast, 2 * kShortTrip, 1));
  path.bottleneck.loss = loss;
  path.warm_up = path.lasts = 50 * kMillisecond;
  return path;
}

// A flow of CUBIC uses 0.49 where one packet of 1,000 is lost, and 0.15 where
// it is one of 100. protocol: 13.12
TEST(congestion, what_chance_loses_on_a_short_path_costs_little) {
  const auto one_of_1000 = play_shared(short_path(kAlways / 1'000));
  EXPECT_EQ(one_of_1000.failure, "");
  EXPECT_GT(one_of_1000.use, 0.95) << "0.84 if each loss counts as that of a queue";
  const auto one_of_100 = play_shared(short_path(kAlways / 100));
  EXPECT_EQ(one_of_100.failure, "");
  EXPECT_GT(one_of_100.use, 0.4) << "0.19 if each loss counts as that of a queue";
}

// Little waits there when it overflows, and hosts hide that. protocol: 13.12
TEST(congestion, tcp_keeps_its_share_of_a_path_with_a_short_queue) {
  auto path = path_of(20 * kSlow, kTrip / 2, 1, 1);
  path.bottleneck.queue = 25'000;
  path.reaction = 100 * kMicrosecond;
  path.warm_up = 2 * kSecond;
  path.lasts = 4 * kSecond;
  const auto write = play_shared(path);
  EXPECT_EQ(write.failure, "");
  EXPECT_GT(write.use, 0.9);
  EXPECT_GT(write.cubic_share, 0.7);
}

// Their queue holds a ninth of what is on the way. protocol: 13.12
TEST(congestion, four_writes_leave_tcp_its_share_of_a_short_queue) {
  auto path = path_of(10 * kSlow, 9 * kTrip / 10, 4, 1);
  path.bottleneck.queue = 25'000;
  path.max_block = 20;
  path.warm_up = path.lasts = 4 * kSecond;
  const auto writes = play_shared(path);
  EXPECT_EQ(writes.failure, "");
  EXPECT_GT(writes.use, 0.9);
  EXPECT_GT(writes.cubic_share, 0.7);
}

// What comes at once fills the queue, and the first of it has waited for little. protocol: 13.12
TEST(congestion, tcp_keeps_its_share_of_a_queue_that_one_block_fills) {
  auto path = path_of(50 * kSlow, 3 * kTrip / 10, 1, 1);
  path.bottleneck.queue = 42'000;  // with 37,500 or less, chance decides
  path.max_block = 20;
  path.length = 4 << 20;
  path.at_once = 8;
  path.warm_up = path.lasts = kSecond;
  const auto write = play_shared(path);
  EXPECT_EQ(write.failure, "");
  EXPECT_GT(write.use, 0.9);
  EXPECT_GT(write.cubic_share, 0.7);
  EXPECT_LT(write.drops, 20U);
}

// protocol: 13.10, 13.12
TEST(congestion, hosts_that_react_late_are_no_queue) {
  for (const Rate loss : {Rate{0}, kAlways / 1'000}) {
    auto path = short_path(loss);
    path.reaction = 100 * kMicrosecond;
    const auto write = play_shared(path);
    EXPECT_EQ(write.failure, "");
    EXPECT_GT(write.use, loss == 0 ? 0.6 : 0.45) << loss;
  }
}

// What comes when they run again has waited for as long as they stood still, in
// part. protocol: 13.10, 13.12
TEST(congestion, hosts_that_stand_still_lose_no_more_than_that_time) {
  auto path = short_path(kAlways / 1'000);
  path.of_receivers = {.count = 1'000,
                       .every = 10 * kMillisecond,
                       .shortest = kMillisecond,
                       .longest = 5 * kMillisecond};
  path.lasts = 100 * kMillisecond;
  const auto write = play_shared(path);
  EXPECT_EQ(write.failure, "");
  EXPECT_GT(write.use, 0.65) << "they run for 0.71 of the time";
}

}  // namespace
}  // namespace stp::sim::shared_path_test
