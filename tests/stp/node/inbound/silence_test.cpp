// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/silence.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

TEST(RecentMaximum, is_the_longest_of_the_last_second_or_two) {
  RecentMaximum recent;
  EXPECT_EQ(recent.longest(), 0U);
  recent.note(50, 0);
  recent.note(20, 100);
  EXPECT_EQ(recent.longest(), 50U);
  recent.note(10, kSecond);
  EXPECT_EQ(recent.longest(), 50U) << "of the second before";
  recent.note(5, 2 * kSecond);
  EXPECT_EQ(recent.longest(), 10U);
  recent.note(1, 4 * kSecond);
  EXPECT_EQ(recent.longest(), 1U) << "nothing is known of the second before";
}

// protocol: 10.13
TEST(Silence, few_blocks_are_asked_for_until_an_answer_shows_that_they_were_lost) {
  Silence silence;
  EXPECT_EQ(silence.asks(), 1U);
  std::uint64_t newest = 10;
  for (const unsigned expected : {2U, 4U, 8U, 16U, 32U, 64U, 64U}) {
    silence.asked(newest);
    silence.broken(1, true, 1'000, 0);  // the Block that was asked for arrives
    EXPECT_EQ(silence.asks(), expected);
    silence.broken(2, true, 10, 0);  // another answer to the same question
    EXPECT_EQ(silence.asks(), expected);
    newest += 10;
  }
  EXPECT_EQ(silence.longest_pause(), 0U) << "something was lost";
}

// protocol: 10.14
TEST(Silence, a_block_that_nobody_asked_for_again_shows_that_none_was_lost) {
  Silence silence;
  silence.asked(10);
  silence.broken(1, true, 1'000, 0);
  ASSERT_EQ(silence.asks(), 2U);
  silence.broken(10, false, 20, 0);  // granted before the question
  EXPECT_EQ(silence.asks(), 1U);
  EXPECT_EQ(silence.longest_pause(), 1'000U) << "from the beginning of the silence";
  silence.broken(11, false, 3'000, 0);
  EXPECT_EQ(silence.longest_pause(), 3'000U);
}

// protocol: 10.14
TEST(Silence, a_block_granted_after_the_question_says_nothing_of_those_before) {
  Silence silence;
  silence.asked(10);
  silence.broken(11, false, 1'000, 0);
  EXPECT_EQ(silence.asks(), 1U);
  EXPECT_EQ(silence.longest_pause(), 0U);
}

TEST(Silence, pauses_between_blocks_that_were_lost_are_not_the_peers) {
  Silence silence;
  silence.broken(1, true, 5'000, 0);  // no question is open: a late answer
  EXPECT_EQ(silence.longest_pause(), 0U);
  silence.broken(2, false, 4'000, 0);
  EXPECT_EQ(silence.longest_pause(), 4'000U);
}

}  // namespace
}  // namespace stp::test
