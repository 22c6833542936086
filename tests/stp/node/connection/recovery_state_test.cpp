// SPDX-License-Identifier: BSD-3-Clause
// What recovery learns from answers of the peer, and when it looks again. Recovery itself:
// recovery_test.cpp.
#include "stp/node/connection/recovery_state.h"

#include "tests/stp/node/mechanisms.h"

namespace stp::test {
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
    vc.questions.answered(now);
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
  EXPECT_EQ(state.granted_at(), now);
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
