// SPDX-License-Identifier: BSD-3-Clause
#include "stp/channel/retry.h"

#include <gtest/gtest.h>

namespace stp {
namespace {

TEST(Retry, ARoundTripBeginsWhenTheRequestLeaves) {
  Retry retry;
  retry.start(100, 1'000);
  EXPECT_EQ(retry.measured(400), 300);
  EXPECT_EQ(retry.measured(400, 350), 50) << "it waited to be sent";
  EXPECT_EQ(retry.measured(400, 20), 300) << "an older request left then";
}

TEST(Retry, AnAnswerToOneOfSeveralTriesMeasuresNothing) {
  Retry retry;
  retry.start(100, 1'000);
  ASSERT_TRUE(retry.again(1'100));
  EXPECT_EQ(retry.measured(1'200), 0);
}

}  // namespace
}  // namespace stp

namespace stp::test {
namespace {

// protocol: 5.20
TEST(RoundTrip, the_first_sample_counts_whole_and_later_ones_an_eighth) {
  RoundTrip trip;
  EXPECT_EQ(trip.smoothed(), RoundTrip::kInitial);
  EXPECT_EQ(trip.timeout(), RoundTrip::kInitial);
  trip.sample(8 * kMillisecond);
  EXPECT_EQ(trip.smoothed(), 8 * kMillisecond);
  EXPECT_EQ(trip.timeout(), 8 * kMillisecond + 4 * (4 * kMillisecond));
  trip.sample(16 * kMillisecond);
  EXPECT_EQ(trip.smoothed(), 9 * kMillisecond);
  // Variation: 3/4 of 4 ms and 1/4 of 8 ms.
  EXPECT_EQ(trip.timeout(), 9 * kMillisecond + 4 * (5 * kMillisecond));
}

// protocol: 5.20
TEST(RoundTrip, a_timeout_stays_within_its_bounds) {
  RoundTrip fast;
  for (int i = 0; i < 100; ++i) fast.sample(100);
  EXPECT_EQ(fast.timeout(), RoundTrip::kMinimum);
  fast.sample(0);
  EXPECT_GT(fast.smoothed(), 0U) << "it is known";
  RoundTrip held_up;
  held_up.sample(kMillisecond);
  held_up.sample(800 * kMillisecond);  // the peer was not scheduled
  EXPECT_EQ(held_up.timeout(), RoundTrip::kLongestPause);
  RoundTrip slow;
  slow.sample(100 * kMillisecond);
  EXPECT_EQ(slow.timeout(), 300 * kMillisecond) << "a long way is no pause";
  slow.sample(900 * kMillisecond);
  EXPECT_EQ(slow.timeout(), 400 * kMillisecond);
  RoundTrip farthest;
  farthest.sample(5 * kSecond);
  EXPECT_EQ(farthest.timeout(), RoundTrip::kMaximum);
}

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
