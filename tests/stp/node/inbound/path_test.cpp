// SPDX-License-Identifier: BSD-3-Clause
// What may be granted along a path, and who waits for room on it (section 13).

#include "stp/node/inbound/path.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stp {
namespace {

constexpr std::uint64_t kPathStu = 1'024, kPathWindow = 16'384;

class PathTest : public ::testing::Test {
 protected:
  PathTable table;
  PathTable::Share path = table.find(MacAddr::from_u64(1), kPathStu);
};

TEST_F(PathTest, connections_with_one_station_share_it) {
  EXPECT_EQ(table.find(MacAddr::from_u64(1), kPathStu), path);
  EXPECT_NE(table.find(MacAddr::from_u64(2), kPathStu), path);
}

TEST_F(PathTest, ends_with_the_last_connection) {
  path->grant(kPathStu);
  path.reset();
  path = table.find(MacAddr::from_u64(1), kPathStu);
  EXPECT_TRUE(path->has_room(2 * kPathWindow)) << "a new one";
}

// protocol: 13.9
TEST_F(PathTest, has_room_for_the_window_and_for_anything_while_it_is_empty) {
  EXPECT_TRUE(path->has_room(2 * kPathWindow));
  path->grant(kPathStu);
  EXPECT_TRUE(path->has_room(kPathWindow - kPathStu));
  EXPECT_FALSE(path->has_room(kPathWindow));
}

// protocol: 13.9
TEST_F(PathTest, those_that_wait_go_in_turn_when_there_is_room) {
  path->grant(kPathWindow);
  path->wait(7, 2 * kPathStu);
  path->wait(8, 2 * kPathStu);
  EXPECT_TRUE(table.roomy().empty());
  path->settle(kPathStu);
  EXPECT_TRUE(table.roomy().empty());
  path->settle(2 * kPathStu);
  ASSERT_FALSE(table.roomy().empty());
  EXPECT_EQ(path->next(kSecond), 7U);
  EXPECT_EQ(path->next(kSecond), kNoneId) << "there is no room for both";
  EXPECT_TRUE(table.roomy().empty());
  path->grant(2 * kPathStu);
  path->settle(2 * kPathStu);
  EXPECT_EQ(path->next(kSecond), 8U);
}

// A window leaves in half a round trip, so a quarter of it in an eighth.
// protocol: 13.18
TEST_F(PathTest, the_next_cts_of_a_long_path_is_due_when_the_last_one_has_had_its_part) {
  constexpr Time kTrip = 20 * kMillisecond, kNow = kSecond;
  path->grant(kPathWindow / 4);
  path->leaves(kPathWindow / 4, kNow);
  EXPECT_TRUE(path->is_due(kNow)) << "nobody knows how long the path is";
  path->arrived(kPathStu, kTrip, kNow);
  path->leaves(kPathWindow / 4, kNow);
  EXPECT_EQ(path->due(), kNow + kTrip / 8);
  EXPECT_FALSE(path->is_due(kNow));
  EXPECT_TRUE(path->is_due(path->due()));
  path->leaves(kPathWindow / 4, kNow);
  EXPECT_EQ(path->due(), kNow + 2 * kTrip / 8);
  path->wait(7, kPathStu);
  path->settle(kPathStu);
  EXPECT_EQ(path->next(kNow), kNoneId);
  path->look();
  EXPECT_EQ(path->next(path->due()), 7U);
  path->settle(kPathWindow / 4 - kPathStu);
  EXPECT_TRUE(path->is_due(kNow)) << "nothing is outstanding";
}

// The window does not double any more, so nearly all of a round trip is there for it.
// protocol: 13.18
TEST_F(PathTest, a_window_that_is_known_leaves_in_nine_tenths_of_a_round_trip) {
  constexpr Time kTrip = 20 * kMillisecond, kNow = kSecond;
  path->grant(kPathWindow / 4);
  path->arrived(kPathStu, kTrip, kNow);
  path->lost(kNow);
  ASSERT_TRUE(path->has_room(kPathWindow / 4));
  path->leaves(kPathWindow / 4, kNow);
  constexpr double window = 0.7 * kPathWindow;
  EXPECT_NEAR(static_cast<double>(path->due() - kNow), 0.9 * kPathWindow / 4 / window * kTrip,
              kMicrosecond * 10);
}

// protocol: 13.18
TEST_F(PathTest, of_less_than_ten_milliseconds_is_not_spread) {
  path->grant(kPathWindow / 2);
  path->arrived(kPathStu, 10 * kMillisecond - 1, kSecond);
  path->leaves(kPathWindow / 4, kSecond);
  EXPECT_TRUE(path->is_due(kSecond));
}

// protocol: 13.13
TEST_F(PathTest, blocks_suit_the_window) {
  EXPECT_EQ(path->block_log2(), 12U) << "nothing is known";
  path->arrived(kPathStu, kMillisecond, kSecond);
  for (unsigned i = 1; i < 40; ++i) path->lost(kSecond + i * kSecond);
  EXPECT_EQ(path->block_log2(), 10U) << "an STU";
}

// A round trip for each STU of 256 bytes would take four times as long for the same bytes.
// protocol: 13.10
TEST_F(PathTest, of_short_stus_has_the_window_of_usual_ones) {
  constexpr std::uint64_t kShort = 256;
  const auto short_path = table.find(MacAddr::from_u64(2), kShort);
  EXPECT_EQ(short_path->block_log2(), path->block_log2());
  Time now = kSecond;
  const auto pass = [&](unsigned times, Time delay) {
    for (; times > 0; --times) {
      now += kMillisecond / 16;
      for (auto* const each : {path.get(), short_path.get()}) {
        each->grant(kPathStu);
        each->wait(7, kPathStu);
        each->arrived(kPathStu, delay, now);
        each->settle(kPathStu);
        each->next(kSecond);
      }
    }
  };
  pass(16, kMillisecond);
  pass(1'500, 3 * kMillisecond / 2);  // a host that is busy
  const auto most = [](const Path& of) {
    std::uint64_t bytes = 0;
    while (of.has_room(bytes + 1)) ++bytes;
    return bytes;
  };
  path->grant(1);
  short_path->grant(1);
  EXPECT_EQ(most(*short_path), most(*path));
  EXPECT_LT(most(*short_path), kPathWindow);
}

}  // namespace

// The window of a path that others use, too (section 13).

namespace {

constexpr std::uint64_t kWindowStu = 1'024;
constexpr Time kWindowTrip = 20 * kMillisecond;  // without a queue

class PathWindowTest : public ::testing::Test {
 protected:
  // A window of STUs arrives in each of `trips` round trips of `delay`.
  using Use = PathWindow::Use;
  void pass(unsigned trips, Time delay, Use use = Use::kBinds) {
    for (; trips > 0; --trips) {
      const auto stus = std::max<std::uint64_t>(window.bytes() / kWindowStu, 1);
      for (std::uint64_t i = 0; i < stus; ++i) {
        now += delay / stus;
        window.arrived(kWindowStu, delay, use, now);
      }
    }
  }
  PathWindow window{kWindowStu};
  Time now = kSecond;
};

// protocol: 13.10
TEST_F(PathWindowTest, doubles_each_round_trip_until_something_waits) {
  const auto first = window.bytes();
  EXPECT_EQ(first, 16'384U);
  pass(3, kWindowTrip);
  EXPECT_GE(window.bytes(), 8 * first - 8 * kWindowStu);
  EXPECT_FALSE(window.is_known());
  pass(2, kWindowTrip + 10 * kMillisecond);
  EXPECT_TRUE(window.is_known());
  const auto then = window.bytes();
  pass(1, kWindowTrip);
  EXPECT_LT(window.bytes(), then + then / 2);
}

// protocol: 13.11
TEST_F(PathWindowTest, shrinks_while_the_queue_is_long_and_grows_when_it_is_gone) {
  pass(3, kWindowTrip);
  const auto most = window.bytes();
  pass(16, kWindowTrip + 10 * kMillisecond);
  const auto less = window.bytes();
  EXPECT_LT(less, most);
  pass(6, kWindowTrip);
  EXPECT_GT(window.bytes(), less);
}

// So whoever has more in the queue gives up more. But a queue may have come from a burst.
// protocol: 13.11
TEST_F(PathWindowTest,
       gives_up_what_it_has_in_the_queue_but_no_more_than_seven_milliseconds_of_it) {
  pass(5, kWindowTrip);
  window.lost(now);
  pass(1, kWindowTrip);
  const auto before = static_cast<double>(window.bytes());
  pass(2, kWindowTrip + 5 * kMillisecond);
  const auto then = static_cast<double>(window.bytes());
  EXPECT_LT(then, 0.85 * before);
  EXPECT_GT(then, 0.6 * before);
  pass(1, 5 * kWindowTrip);
  EXPECT_GT(static_cast<double>(window.bytes()), 0.8 * then);
  pass(8, 5 * kWindowTrip);
  EXPECT_LT(static_cast<double>(window.bytes()), then / 2) << "it was no burst";
}

// A path of 80 ms with a queue of 0.9 ms, of which a large window has 32 KB.
class LongPathWindowTest : public PathWindowTest {
 protected:
  // What is left of a window that had doubled so often, after two round trips with that queue.
  double part_kept(unsigned doublings) {
    constexpr Time kLong = 80 * kMillisecond;
    pass(doublings, kLong);
    window.lost(now);
    pass(1, kLong);
    const auto before = static_cast<double>(window.bytes());
    pass(2, kLong + kMillisecond);
    return static_cast<double>(window.bytes()) / before;
  }
};

// protocol: 13.11
TEST_F(LongPathWindowTest, a_large_window_yields) {
  const auto kept = part_kept(8);
  EXPECT_LT(kept, 0.9) << "0.98 if it gives up what it has in the queue";
  EXPECT_GT(kept, 0.75);
}

TEST_F(PathWindowTest, keeps_an_stu_at_least) {
  pass(1, kWindowTrip);
  pass(60, kWindowTrip + 30 * kMillisecond);
  EXPECT_GE(window.bytes(), kWindowStu);
}

TEST_F(PathWindowTest, a_window_that_is_not_used_does_not_grow) {
  const auto first = window.bytes();
  pass(5, kWindowTrip, Use::kLittle);
  EXPECT_EQ(window.bytes(), first);
}

// protocol: 13.12
TEST_F(PathWindowTest, a_loss_takes_three_tenths_once_in_a_round_trip) {
  pass(3, kWindowTrip);
  const auto before = window.bytes();
  window.lost(now);
  const auto after = window.bytes();
  EXPECT_NEAR(static_cast<double>(after), 0.7 * static_cast<double>(before), kWindowStu);
  window.lost(now + kWindowTrip / 2);
  EXPECT_EQ(window.bytes(), after);
  window.lost(now + 2 * kWindowTrip);
  EXPECT_LT(window.bytes(), after);
}

// Its queue is shorter than what the senders would keep there.
// protocol: 13.22
TEST_F(PathWindowTest, after_a_mark_it_grows_a_quarter_as_fast_for_64_round_trips) {
  pass(6, kWindowTrip);
  const auto grows = [this](unsigned trips) {
    const auto before = window.bytes();
    pass(trips, kWindowTrip);
    return window.bytes() - before;
  };
  window.lost(now);
  const auto after_loss = grows(3);
  pass(1, kWindowTrip);
  const auto before = window.bytes();
  window.marked(now);
  EXPECT_NEAR(static_cast<double>(window.bytes()), 0.7 * static_cast<double>(before), kWindowStu);
  const auto after_mark = grows(3);
  EXPECT_LT(3 * after_mark, after_loss);
  EXPECT_GT(8 * after_mark, after_loss);
  now += 64 * kWindowTrip;
  window.lost(now);
  EXPECT_GT(grows(3), 3 * after_mark);
}

// What hosts may need is then taken for waiting, until the path has been looked at again.
// protocol: 13.12
TEST_F(PathWindowTest, a_loss_shows_that_the_queue_is_short) {
  constexpr Time kShort = 50 * kMicrosecond, kBusy = kShort + 60 * kMicrosecond;
  pass(2, kShort);
  const auto first = window.bytes();
  pass(2, kBusy);
  EXPECT_GT(window.bytes(), first);
  window.lost(now);
  const auto after = window.bytes();
  pass(4, kBusy);
  EXPECT_LT(window.bytes(), after);
  while (window.bytes() > kWindowStu) pass(1, kBusy);  // until it is looked at
  pass(40, kShort);
  const auto then = window.bytes();
  EXPECT_GT(then, after);
  pass(4, kBusy);
  EXPECT_GT(window.bytes(), then);
}

// What is lost while much waits comes from a queue, other losses from chance.
// protocol: 13.12
TEST_F(PathWindowTest, losses_by_chance_take_little_on_a_short_path) {
  constexpr Time kShort = kMillisecond;
  const auto lose = [this](Time delay) {
    pass(1, delay);
    const auto before = window.bytes();
    window.lost(now);
    return static_cast<double>(window.bytes()) / static_cast<double>(before);
  };
  pass(7, kShort);
  EXPECT_LT(lose(kShort), 0.75) << "nothing is known of losses";
  for (unsigned i = 0; i < 8; ++i) lose(kShort);
  pass(3, kShort);
  const auto before = window.bytes();
  window.lost(now);
  EXPECT_EQ(window.bytes(), before - 4 * kWindowStu);
  for (unsigned i = 0; i < 1'000; ++i) window.lost(now);
  EXPECT_NEAR(static_cast<double>(window.bytes()), 0.7 * static_cast<double>(before), 2)
      << "no more in a round trip";
  for (unsigned i = 0; i < 20; ++i) lose(3 * kShort);
  pass(10, kShort);
  EXPECT_LT(lose(3 * kShort), 0.75) << "they come when much waits";
}

// A queue of a fiftieth of the length overflows.
// protocol: 13.12
TEST_F(PathWindowTest, a_short_queue_that_overflows_is_told_from_chance_and_steps_suit_it) {
  constexpr Time kLength = 16 * kMillisecond, kFull = kLength + kLength / 50;
  pass(6, kLength);
  for (unsigned i = 0; i < 7; ++i) {
    pass(2, kLength);
    pass(1, kFull);
    const auto before = window.bytes();
    window.lost(now);
    EXPECT_LT(static_cast<double>(window.bytes()), 0.75 * static_cast<double>(before)) << i;
    pass(4, kLength);
  }
  pass(10, kLength);
  const auto before = window.bytes();
  ASSERT_GT(before, 100 * kWindowStu);
  pass(1, kLength);
  EXPECT_LT(window.bytes(), before + before / 20 + 2 * kWindowStu) << "an eighth, otherwise";
}

// protocol: 13.12
TEST_F(PathWindowTest, losses_by_chance_count_as_others_on_a_long_path) {
  pass(6, kWindowTrip);
  for (unsigned i = 0; i < 12; ++i) {
    const auto before = window.bytes();
    window.lost(now);
    EXPECT_NEAR(static_cast<double>(window.bytes()), 0.7 * static_cast<double>(before), 2);
    pass(2, kWindowTrip);
  }
}

// Delays that differ from one sample to the next are not those of a queue.
// protocol: 13.10
TEST_F(PathWindowTest, hosts_that_are_busy_may_need_more_of_a_delay) {
  constexpr Time kShort = 100 * kMicrosecond;
  pass(1, kShort);
  const auto pass_busy = [this](Time more) {
    for (unsigned i = 0; i < 500; ++i) {
      now += 20 * kMicrosecond;
      window.arrived(kWindowStu, kShort + (i % 2 == 0 ? more : 2 * more), Use::kBinds, now);
    }
  };
  pass_busy(150 * kMicrosecond);
  const auto then = window.bytes();
  EXPECT_GT(then, 20 * kWindowStu);
  for (unsigned i = 0; i < 3; ++i) pass_busy(2 * kMillisecond);
  EXPECT_LT(window.bytes(), then) << "no host needs as much";
}

// A path that has become longer looks like one with a queue, until the window has been small for a
// moment.
// protocol: 13.11
TEST_F(PathWindowTest, finds_out_from_time_to_time_how_long_the_path_is) {
  pass(2, kWindowTrip);
  pass(2, kWindowTrip + 10 * kMillisecond);
  pass(40, 2 * kWindowTrip);
  EXPECT_LT(window.bytes(), 8 * kWindowStu);
  pass(24, 2 * kWindowTrip);
  EXPECT_GT(window.bytes(), 8 * kWindowStu) << "nothing waits on the longer path";
}

// What has been sent, and what proves that it arrived.
class SentWindowTest : public ::testing::Test {
 protected:
  // Sends STUs until there is no room, or `most` of them. A question leaves when it is due.
  std::size_t fill(std::size_t most = 10'000) {
    std::size_t stus = 0;
    for (; stus != most && window.has_room(); ++stus) {
      window.sent(kWindowStu);
      if (window.asks()) window.ask(++sync, 1, now);
    }
    return stus;
  }
  // The questions after `answered` are answered after a round trip, but for `lost`.
  void pass(std::uint32_t lost = 0) {
    now += kWindowTrip;
    for (const auto newest = sync; answered != newest;)
      if (++answered != lost) {
        EXPECT_TRUE(window.answered(answered, now));
      }
  }
  SentWindow window{kWindowStu, kWindowStu};
  std::uint32_t sync = 0, answered = 0;
  Time now = kSecond;
};

// protocol: 13.16
TEST_F(SentWindowTest, is_eight_times_that_of_a_receiver_and_doubles_while_it_is_used) {
  EXPECT_EQ(fill(), 128U);
  EXPECT_EQ(sync, 4U);
  pass();
  EXPECT_GT(fill(), 200U) << "it is not in use any more when the last answer comes";
  pass();
  EXPECT_GT(fill(), 350U);
}

TEST_F(SentWindowTest, does_not_grow_while_little_is_sent) {
  for (unsigned i = 0; i < 20; ++i) {
    fill(32);
    pass();
  }
  EXPECT_EQ(fill(), 128U);
}

// Who paces what he asks for sees the queue, too.
// protocol: 13.16
TEST_F(SentWindowTest, shrinks_because_of_a_queue_only_while_it_binds) {
  fill();
  pass();
  window.give_up();
  const auto room = window.room();
  for (unsigned i = 0; i < 10; ++i) {
    fill(100);
    now += 2 * kWindowTrip;  // in a queue
    pass();
  }
  window.give_up();
  EXPECT_GE(window.room(), room);
  for (unsigned i = 0; i < 10; ++i) {
    fill();
    window.wait(1);
    now += 2 * kWindowTrip;
    pass();
    EXPECT_EQ(window.next(), 1U);
  }
  window.give_up();
  EXPECT_LT(window.room(), room);
}

// A question waits behind what has left before it.
// protocol: 13.16
TEST_F(SentWindowTest, what_is_sent_at_once_is_no_queue) {
  while (window.room() < 500) {
    fill();
    pass();
  }
  // The queue holds a 50th of the window, which is more than 16 pieces.
  const auto room_after = [this](unsigned trips) {
    for (; trips > 0; --trips) {
      fill();
      window.wait(1);
      now += kWindowTrip / 40;
      pass();
      EXPECT_EQ(window.next(), 1U);
    }
    window.give_up();
    return window.room();
  };
  const auto room = room_after(3);
  EXPECT_GT(room, 1'000U);
  EXPECT_GT(room_after(5), room);
}

// protocol: 13.16
TEST_F(SentWindowTest, a_lost_question_halves_it) {
  fill();
  pass();
  fill();
  pass(answered + 2);
  EXPECT_LT(fill(), 200U) << "half of it, and the answers have made it grow";
}

// protocol: 13.16
TEST_F(SentWindowTest, a_silence_halves_it_once) {
  fill();
  EXPECT_EQ(window.patience(), now + kSecond) << "nothing is known of the path";
  pass();
  fill();
  for (unsigned i = 0; i < 5; ++i) {
    now = window.patience();
    window.silent(now);
    EXPECT_FALSE(window.has_room());
    window.ask(++sync, 1, now);
  }
  answered = sync - 1;
  pass();
  EXPECT_NEAR(static_cast<double>(fill()), 112, 8);
}

// protocol: 13.16
TEST_F(SentWindowTest, asks_again_soon_while_something_waits_for_a_short_path) {
  constexpr Time kShort = kMillisecond, kSilent = 200 * kMillisecond;
  fill();
  now += kShort;
  while (answered != sync) EXPECT_TRUE(window.answered(++answered, now));
  fill();
  const auto then = now;
  EXPECT_EQ(window.patience(), then + kSilent) << "nobody needs the room";
  window.wait(1);
  EXPECT_EQ(window.patience(), then + 4 * kShort);
  now = window.patience();
  window.silent(now);
  window.ask(++sync, 1, now);
  EXPECT_EQ(window.patience(), now + 8 * kShort);
  while (answered != sync - 1)
    EXPECT_TRUE(window.answered(++answered, now + 1)) << "the answers are late";
  EXPECT_TRUE(window.has_room());
  EXPECT_TRUE(window.is_open()) << "the later question is not lost";
  EXPECT_TRUE(window.answered(++answered, now + kShort));
  EXPECT_GT(fill(), 200U) << "it has not become smaller";
}

// protocol: 13.16
TEST_F(SentWindowTest, asks_again_along_a_long_path_only_after_a_silence) {
  fill();
  window.wait(1);
  EXPECT_EQ(window.patience(), now + kSecond) << "nobody knows how long it is";
  pass();
  fill();
  EXPECT_EQ(window.patience(), now + 200 * kMillisecond);
}

TEST_F(SentWindowTest, only_answers_to_its_last_questions_are_taken) {
  fill();
  EXPECT_FALSE(window.answered(77, now));
  pass();
  EXPECT_TRUE(window.answered(answered, now)) << "again";
  for (unsigned i = 0; i < 6; ++i) {
    fill();
    pass();
  }
  EXPECT_FALSE(window.answered(1, now)) << "too long ago";
}

}  // namespace
}  // namespace stp

namespace stp::test {
namespace {

class GrantAccountTest : public ::testing::Test {
 protected:
  NodeGrants node;
  std::uint64_t owner = 0;
  GrantAccount account{node, owner}, second{node, owner};

  void expect(std::uint64_t charged, std::uint64_t silent) const {
    EXPECT_EQ(node.charged, charged);
    EXPECT_EQ(owner, charged);
    EXPECT_EQ(node.silent, silent);
  }
};

TEST_F(GrantAccountTest, what_is_granted_is_charged_until_it_is_settled) {
  account.grant(100);
  second.grant(50);
  expect(150, 0);
  account.settle(30);
  EXPECT_EQ(account.outstanding(), 70U);
  EXPECT_EQ(second.outstanding(), 50U);
  expect(120, 0);
  EXPECT_FALSE(node.look_again);
  account.settle(70);
  second.settle(50);
  expect(0, 0);
  EXPECT_TRUE(node.look_again) << "an owner without grants may have one whatever the others have";
}

// protocol: 10.8
TEST_F(GrantAccountTest, short_stus_are_charged_like_the_longest) {
  GrantAccount of_short{node, owner, 3};
  of_short.grant(100);
  expect(800, 0);
  EXPECT_EQ(of_short.outstanding(), 100U);
  EXPECT_EQ(of_short.charge_of(10), 80U);
  ASSERT_TRUE(of_short.write_off(800));
  expect(0, 800);
  of_short.arrived();
  of_short.settle(100);
  expect(0, 0);
}

// What comes over 20 ms: of 16 bytes one.
// protocol: 13.23
TEST_F(GrantAccountTest, what_comes_over_a_long_path_is_charged_less) {
  constexpr Time kLength = 20 * kMillisecond;
  PathTable paths;
  GrantAccount far{node, owner};
  auto& path = far.join(paths.find(MacAddr::from_u64(1), 1'024));
  far.grant(1'000);
  expect(1'000, 0);  // nobody knows yet how long it is
  path.arrived(100, kLength, kLength);
  far.settle(100);
  expect(900, 0);
  far.grant(500);
  expect((1'400 + 15) / 16, 0);
  EXPECT_EQ(far.charge_of(1'600), 100U);
  far.settle(1);
  expect((1'399 + 15) / 16, 0);
  ASSERT_TRUE(far.write_off(100));
  expect(0, (1'399 + 15) / 16);
  far.grant(8);
  expect(1, (1'399 + 15) / 16);  // no less than that, for something is outstanding
  far.arrived();
  far.settle(1'400);
  expect(1, 0);
  path.arrived(100, kMillisecond, 2 * kLength);  // it is shorter after all
  far.grant(3);
  expect(10, 0);
  far.settle(10);
  expect(0, 0);
  EXPECT_EQ(far.outstanding(), 0U);
}

// Whoever delays what it sends seems to be far away: that is the price. Where the path is longer,
// the silence lasts for a second before it is excused, and then no limit concerns it.
// protocol: 10.12, 13.23
TEST_F(GrantAccountTest, a_silent_peer_along_a_long_path_is_excused_for_128_limits_at_most) {
  constexpr std::uint64_t kLimit = 1'000;
  constexpr Time kLength = 250 * kMillisecond;
  PathTable paths;
  GrantAccount far{node, owner};
  far.join(paths.find(MacAddr::from_u64(1), 1'024)).arrived(1, kLength, kLength);
  for (far.grant(kLimit); far.write_off(kLimit);) far.grant(kLimit);
  EXPECT_EQ(far.outstanding() / kLimit, 128U);
  EXPECT_LE(node.charged, kLimit);
}

TEST_F(GrantAccountTest, what_a_silent_peer_owes_does_not_block_others_up_to_a_limit) {
  account.grant(100);
  second.grant(60);
  EXPECT_FALSE(account.write_off(99));
  expect(160, 0);
  EXPECT_TRUE(account.write_off(150));
  expect(60, 100);
  EXPECT_EQ(account.outstanding(), 100U);
  EXPECT_FALSE(second.write_off(150)) << "all of them together";
  expect(60, 100);
}

TEST_F(GrantAccountTest, it_counts_again_when_something_arrives) {
  account.grant(100);
  ASSERT_TRUE(account.write_off(1'000));
  account.settle(10);  // will not arrive: a Block of it has ended
  expect(0, 90);
  account.grant(5);  // a new one is charged, as any other
  expect(5, 90);
  account.arrived();
  expect(95, 0);
  EXPECT_EQ(account.outstanding(), 95U);
  account.arrived();
  expect(95, 0);
}

TEST_F(GrantAccountTest, what_is_forgotten_is_in_neither_sum) {
  account.grant(100);
  ASSERT_TRUE(account.write_off(1'000));
  account.grant(20);
  account.forget();
  expect(0, 0);
  EXPECT_EQ(account.outstanding(), 120U);
  EXPECT_TRUE(account.write_off(0)) << "it is in no sum that could be full";
  expect(0, 0);
  account.arrived();
  expect(120, 0);
  account.forget();
  expect(0, 0);
  account.settle(120);
  expect(0, 0);
  account.grant(7);
  ASSERT_TRUE(account.write_off(7));
  expect(0, 7);  // what was forgotten is over
}

}  // namespace
}  // namespace stp::test
