// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/common.h"

#include <gtest/gtest.h>

#include "stp/wire/operations.h"

namespace stp::test {
namespace {

constexpr auto kOurPeer = MacAddr::from_u64(0x020000000001);
constexpr auto kStranger = MacAddr::from_u64(0x020000000002);
constexpr std::size_t kToOne = Answers::kToOneStranger;
constexpr std::size_t kShare = Answers::kShare;

Answer to(const MacAddr& dst, wire::Op op = wire::Op::kRequestStateResponse) {
  Answer answer{};
  answer.dst = dst;
  answer.header.op_flags = wire::op_flags(op);
  return answer;
}
MacAddr stranger(std::uint64_t number) {
  return MacAddr::from_u64(0x020000010000 + number);
}

class AnswersTest : public ::testing::Test {
 protected:
  Answers answers;

  // Fills the places of strangers, as far as there is room. Returns how many that were.
  std::size_t fill_with_strangers() {
    std::size_t added = 0;
    for (std::uint64_t i = 0; i < 4 * Answers::kToStrangers; ++i) {
      if (answers.room_for_stranger(stranger(i), 1) != Answers::Added::kYes) continue;
      answers.add_for_stranger(to(stranger(i)), stranger(i));
      ++added;
    }
    return added;
  }
  // Sends the next answer. Returns its destination; none: zeros.
  MacAddr send(bool users_wait) {
    const auto* const next = answers.next(users_wait);
    if (next == nullptr) return {};
    const auto dst = next->dst;
    answers.sent(users_wait);
    return dst;
  }
};

TEST_F(AnswersTest, leave_in_the_order_in_which_they_were_made) {
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(answers.next(false), nullptr);
  ASSERT_TRUE(answers.add(to(kOurPeer)));
  answers.add_for_stranger(to(kStranger), kStranger);
  ASSERT_TRUE(answers.add(to(kOurPeer)));
  EXPECT_FALSE(answers.empty());
  EXPECT_EQ(send(false), kOurPeer);
  EXPECT_EQ(send(false), kStranger);
  EXPECT_EQ(send(false), kOurPeer);
  EXPECT_TRUE(answers.empty());
}

TEST_F(AnswersTest, what_peers_cause_is_bounded) {
  for (std::size_t i = 0; i < Answers::kToPeers; ++i) ASSERT_TRUE(answers.add(to(kOurPeer)));
  EXPECT_FALSE(answers.add(to(kOurPeer)));
  EXPECT_EQ(answers.room_for_stranger(kStranger, 1), Answers::Added::kYes);
  send(false);
  EXPECT_TRUE(answers.add(to(kOurPeer)));
}

// protocol: 5.41
TEST_F(AnswersTest, one_stranger_gets_few_places_of_those_of_all) {
  EXPECT_EQ(answers.room_for_stranger(kStranger, kToOne), Answers::Added::kYes);
  EXPECT_EQ(answers.room_for_stranger(kStranger, kToOne + 1), Answers::Added::kAddressFull);
  for (std::size_t i = 0; i < kToOne; ++i) answers.add_for_stranger(to(kStranger), kStranger);
  EXPECT_EQ(answers.room_for_stranger(kStranger, 1), Answers::Added::kAddressFull);
  EXPECT_EQ(answers.room_for_stranger(stranger(1), 1), Answers::Added::kYes);
  send(false);
  EXPECT_EQ(answers.room_for_stranger(kStranger, 1), Answers::Added::kYes);
}

// protocol: 5.41
TEST_F(AnswersTest, strangers_leave_the_places_of_peers_free) {
  EXPECT_EQ(fill_with_strangers(), Answers::kToStrangers);
  EXPECT_EQ(answers.room_for_stranger(kStranger, 1), Answers::Added::kFull);
  EXPECT_TRUE(answers.add(to(kOurPeer)));
}

// protocol: 5.41
TEST_F(AnswersTest, while_users_wait_strangers_get_one_frame_in_eight) {
  ASSERT_EQ(fill_with_strangers(), Answers::kToStrangers);
  std::size_t burst = 0;
  while (!send(true).is_zero()) ++burst;
  EXPECT_EQ(burst, 32U) << "a burst may leave at once";
  std::size_t sent = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    answers.users_sent(kShare - 2);
    EXPECT_TRUE(send(true).is_zero());
    answers.users_sent(1);
    sent += send(true).is_zero() ? 0 : 1;
    EXPECT_TRUE(send(true).is_zero());
  }
  EXPECT_EQ(sent, 10U);
  answers.users_sent(1'000'000);  // what may be saved up is bounded
  burst = 0;
  while (!send(true).is_zero()) ++burst;
  EXPECT_EQ(burst, 32U);
  EXPECT_FALSE(send(false).is_zero()) << "nobody else has anything to send";
}

// protocol: 5.41
TEST_F(AnswersTest, peers_do_not_wait_for_strangers_that_have_no_credit) {
  ASSERT_EQ(fill_with_strangers(), Answers::kToStrangers);
  while (!send(true).is_zero()) continue;
  ASSERT_TRUE(answers.add(to(kOurPeer)));  // later than all of the strangers'
  EXPECT_EQ(send(true), kOurPeer);
}

TEST_F(AnswersTest, all_but_those_to_state_requests_press) {
  ASSERT_TRUE(answers.add(to(kOurPeer)));
  EXPECT_FALSE(answers.has_pressing());
  ASSERT_TRUE(answers.add(to(kOurPeer, wire::Op::kConnectionAnswer)));
  answers.add_for_stranger(to(kStranger, wire::Op::kConnectionAnswer), kStranger);
  send(false);
  EXPECT_TRUE(answers.has_pressing());
  send(false);
  EXPECT_TRUE(answers.has_pressing());
  send(false);
  EXPECT_FALSE(answers.has_pressing());
}

// protocol: 9.43
TEST_F(AnswersTest, that_a_transfer_is_complete_presses) {
  auto answer = to(kOurPeer);
  answer.completes = true;
  ASSERT_TRUE(answers.add(answer));
  EXPECT_TRUE(answers.has_pressing());
  send(false);
  EXPECT_FALSE(answers.has_pressing());
}

}  // namespace
}  // namespace stp::test
