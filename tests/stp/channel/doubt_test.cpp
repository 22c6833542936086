// SPDX-License-Identifier: BSD-3-Clause
#include "stp/channel/doubt.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

// protocol: 10.21
TEST(Doubt, an_answer_speaks_of_what_left_before_its_question) {
  Doubt doubt;
  EXPECT_EQ(doubt.seen_since(1), kNever);
  doubt.begin(100);
  EXPECT_TRUE(doubt.is_open());
  doubt.ask(7, 5);
  EXPECT_FALSE(doubt.is_answer(6));
  ASSERT_TRUE(doubt.is_answer(7));
  EXPECT_TRUE(doubt.answered(true, 300));
  EXPECT_FALSE(doubt.is_answer(7)) << "a repeat of it";
  EXPECT_EQ(doubt.seen_since(5), 300U);
  EXPECT_EQ(doubt.seen_since(6), kNever);
  EXPECT_EQ(doubt.read_since(5), 300U);
  EXPECT_EQ(doubt.read_since(6), kNever);
  doubt.is_over();
  EXPECT_FALSE(doubt.is_open());
}

// protocol: 10.21
TEST(Doubt, a_user_that_reads_late_is_waited_for_but_not_for_ever) {
  Doubt doubt;
  doubt.begin(0);
  doubt.begin(Doubt::kLongest);  // it has begun
  doubt.ask(1, 5);
  EXPECT_FALSE(doubt.answered(false, Doubt::kLongest - 1));
  EXPECT_EQ(doubt.seen_since(5), Doubt::kLongest - 1);
  EXPECT_EQ(doubt.read_since(5), kNever);
  doubt.ask(2, 6);
  EXPECT_TRUE(doubt.answered(false, Doubt::kLongest));
  EXPECT_EQ(doubt.read_since(6), Doubt::kLongest);
}

TEST(Doubt, without_a_doubt_an_answer_counts_as_read) {
  Doubt doubt;
  doubt.ask(1, 5);
  EXPECT_TRUE(doubt.answered(false, 10));
  EXPECT_EQ(doubt.read_since(5), 10U);
}

// protocol: 10.21
TEST(Doubt, pauses_double_up_to_the_longest_and_begin_anew_with_the_next_doubt) {
  Doubt doubt;
  doubt.begin(0);
  EXPECT_EQ(doubt.pause(100 * kMillisecond), 100 * kMillisecond);
  EXPECT_EQ(doubt.pause(100 * kMillisecond), 200 * kMillisecond);
  EXPECT_EQ(doubt.pause(100 * kMillisecond), Doubt::kLongest);
  EXPECT_EQ(doubt.pause(100 * kMillisecond), Doubt::kLongest);
  doubt.is_over();
  EXPECT_EQ(doubt.pause(kMillisecond), kMillisecond);
}

}  // namespace
}  // namespace stp::test
