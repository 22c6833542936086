// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/slot_questions.h"

#include <gtest/gtest.h>

#include "tests/stp/node/mechanisms.h"

namespace stp::test {
namespace {

constexpr Time kInterval = 100;

TEST(SlotQuestions, one_is_open_until_its_answer_comes) {
  SlotQuestions questions;
  EXPECT_FALSE(questions.is_open());
  EXPECT_EQ(questions.deadline(), kNever);
  questions.ask(7, 1'000, kInterval, 0);
  EXPECT_TRUE(questions.is_open(7));
  EXPECT_FALSE(questions.is_open(8));
  EXPECT_EQ(questions.deadline(), 1'000 + kInterval);
  RoundTrip round_trip;
  questions.answered(round_trip, 1'050);
  EXPECT_EQ(round_trip.smoothed(), 50U);
  EXPECT_FALSE(questions.is_open(7));
  EXPECT_TRUE(questions.is_own(7));  // the answer may be repeated
  EXPECT_FALSE(questions.is_own(8));
}

TEST(SlotQuestions, an_answer_to_a_repeated_question_is_no_sample) {
  SlotQuestions questions;
  questions.ask(7, 1'000, kInterval, 0, 2);
  ASSERT_TRUE(questions.due(1'100));
  EXPECT_TRUE(questions.again(1'100));
  RoundTrip round_trip;
  questions.answered(round_trip, 1'150);
  EXPECT_EQ(round_trip.smoothed(), RoundTrip::kInitial);
  questions.ask(8, 2'000, kInterval, 0, 1);
  EXPECT_FALSE(questions.again(2'100));  // its tries are used up
  EXPECT_FALSE(questions.is_open());
}

// protocol: 6.7
TEST(SlotQuestions, wait_longer_and_longer_where_there_is_no_slot) {
  SlotQuestions questions;
  const auto pause = [&] {
    questions.postpone(1'000);
    return questions.deadline() - 1'000;
  };
  EXPECT_EQ(pause(), SlotQuestions::kFirstPause);
  EXPECT_TRUE(questions.postponed());
  EXPECT_FALSE(questions.is_time(1'000));
  EXPECT_TRUE(questions.is_time(1'000 + SlotQuestions::kFirstPause));
  EXPECT_EQ(pause(), 2 * SlotQuestions::kFirstPause);
  for (int i = 0; i < 20; ++i) pause();
  EXPECT_EQ(pause(), SlotQuestions::kLongestPause);
  questions.has_credit();
  EXPECT_EQ(pause(), SlotQuestions::kFirstPause);
  questions.ask(7, 2'000, kInterval, 0);  // no longer postponed
  EXPECT_FALSE(questions.postponed());
  questions.stop();
  EXPECT_EQ(questions.deadline(), kNever);
}

// protocol: 6.4, 6.5
TEST(SlotCreditTest, answers_count_from_the_moment_of_their_question) {
  SlotCredit credit;
  credit.reset(10);
  for (int i = 0; i < 6; ++i) credit.spend();
  credit.asked(1);
  credit.spend();
  credit.asked(2);
  EXPECT_TRUE(credit.answered(2, 9));
  EXPECT_EQ(credit.credit(), 9U);
  EXPECT_FALSE(credit.answered(1, 10)) << "an older answer says less";
  EXPECT_FALSE(credit.answered(2, 10)) << "each answer counts once";
  credit.asked(3);
  for (int i = 0; i < 4; ++i) credit.spend();
  EXPECT_TRUE(credit.answered(3, 3));
  EXPECT_EQ(credit.credit(), 0U);
}

// On a long path many are under way: those that were asked a round trip ago are answered now.
// protocol: 6.5
TEST(SlotCreditTest, answers_count_however_many_questions_are_under_way) {
  constexpr std::uint32_t kUnderWay = 100, kSlots = 200;
  SlotCredit credit;
  credit.reset(kSlots);
  for (std::uint32_t sync = 1; sync <= 10 * kSlots; ++sync) {
    ASSERT_TRUE(credit.available()) << "the peer has read all but the last " << kUnderWay;
    credit.spend();
    credit.asked(sync);
    if (sync > kUnderWay) credit.answered(sync - kUnderWay, kSlots);
  }
}

// The peer reads at once, and its answers take a round trip, in which nearly half of its Slots are
// used. One question is open at a time.
// protocol: 6.6
TEST(SlotCreditTest, nearly_half_of_the_slots_are_used_in_a_round_trip_of_a_long_path) {
  constexpr std::uint32_t kTrip = 90, kSlots = 200;
  SlotCredit credit;
  credit.reset(kSlots);
  std::uint32_t sync = 0, asked_at = 0, questions = 0;
  for (std::uint32_t sent = 1; sent <= 20 * kTrip; ++sent) {
    ASSERT_TRUE(credit.available()) << sent;
    credit.spend();
    if (sync == 0 && credit.should_ask()) {
      credit.asked(sync = sent);
      asked_at = sent;
      ++questions;
    } else if (sync != 0 && sent - asked_at == kTrip) {
      credit.answered(sync, kSlots);
      sync = 0;
    }
  }
  EXPECT_LE(questions, 20U) << "one in a round trip";
}

}  // namespace

// What recovery learns from answers of the peer, and when it looks again. Recovery itself:
// recovery_test.cpp.

namespace {

// A connection that has granted one Block, of which nothing arrives.
class Doubted : public ::testing::Test {
 protected:
  void SetUp() override {
    m.vcs.endpoint.config.recover = true;
    vc.inbound.configure({12, 10}, false, GrantAccount(grants, owner));
    vc.inbound.offered({.max_block = 20, .t_len = 4096, .i_id = 8});
    const wire::ClearToSend cts{
        .blocksize = 12, .r_mx = 5, .r_bufx = 16, .b_num = 0, .i_id = 8, .r_id = 7};
    ASSERT_EQ(vc.inbound.grant(cts, 4096, now), 0);
    m.recovery.expect_data(vc, now);
    state.grant_left(now);
  }
  // Looks at the time of the next check. Returns the operations that leave for it.
  std::vector<wire::Op> check() {
    EXPECT_NE(state.deadline(), kNever);
    now = std::max(now, state.deadline());
    m.recovery.check(vc, now);
    return m.sent();
  }
  // Checks until the peer is asked whether it has seen the grant.
  void ask() {
    for (int i = 0; i < 10; ++i) {
      if (check() == std::vector{wire::Op::kRequestState}) return;
    }
    ADD_FAILURE() << "no question";
  }
  void answer(bool all_read) {
    const auto sync = vc.questions.sync();
    vc.questions.answered(vc.round_trip, now);
    state.answered(sync, all_read, vc.round_trip, now);
  }

  NodeGrants grants;
  std::uint64_t owner = 0;
  Mechanisms m;
  Vc& vc = m.open(1);
  RecoveryState& state = vc.recovery;
  Time now = kSecond;
};

// protocol: 10.3
TEST(RecoveryTimeout, is_four_round_trips_and_never_below_its_bound) {
  RoundTrip short_one, long_one;
  for (int i = 0; i < 50; ++i) {
    short_one.sample(20 * kMicrosecond);
    long_one.sample(2 * kMillisecond);
  }
  EXPECT_EQ(RecoveryState::shortest_timeout(short_one), RecoveryState::kMinDataTimeout);
  EXPECT_EQ(RecoveryState::shortest_timeout(long_one), 4 * long_one.smoothed());
}

TEST(RecoveryTimeout, without_a_doubt_an_answer_brings_no_check) {
  RecoveryState state;
  EXPECT_EQ(state.deadline(), kNever);
  state.answered(7, true, RoundTrip(), kSecond);
  EXPECT_EQ(state.deadline(), kNever);
}

// protocol: 10.21
TEST_F(Doubted, once_all_is_read_the_block_has_a_round_trip_to_come) {
  ask();
  answer(true);
  EXPECT_EQ(state.deadline(), now + vc.round_trip.timeout());
  EXPECT_EQ(check(), std::vector{wire::Op::kClearToSend});
}

// protocol: 10.21
TEST_F(Doubted, a_peer_that_has_not_read_is_asked_again_after_longer_and_longer_pauses) {
  auto pause = RecoveryState::shortest_timeout(vc.round_trip);
  for (int i = 0; i < 2; ++i, pause *= 2) {
    ask();
    answer(false);
    EXPECT_EQ(state.deadline(), now + pause);
  }
}

// protocol: 10.21
TEST_F(Doubted, the_answer_to_another_question_brings_a_check_at_once) {
  ask();
  state.answered(vc.questions.sync() + 1, true, vc.round_trip, now);
  EXPECT_EQ(state.deadline(), now);
}

// protocol: 10.21
TEST_F(Doubted, a_peer_that_finds_no_slot_here_is_not_silent) {
  now = state.deadline();
  state.has_no_slot(now);
  const auto until = now + SlotQuestions::kLongestPause;
  while (now < until) {
    EXPECT_EQ(check(), std::vector<wire::Op>{});
    if (state.deadline() > until) break;
  }
  ask();
  EXPECT_GE(now, until + RecoveryState::kMinDataTimeout);
}

TEST_F(Doubted, a_grant_that_leaves_late_is_waited_for_from_then_on) {
  now += kSecond;
  state.grant_left(now);
  EXPECT_EQ(check(), std::vector<wire::Op>{});
  EXPECT_GT(state.deadline(), now + RecoveryState::kMinDataTimeout);
}

TEST_F(Doubted, a_connection_that_has_stopped_looks_no_more) {
  state.stop();
  EXPECT_EQ(state.deadline(), kNever);
  EXPECT_EQ(m.recovery.check(vc, now + kSecond), 0U);
  EXPECT_TRUE(m.sent().empty());
}

}  // namespace
}  // namespace stp::test
