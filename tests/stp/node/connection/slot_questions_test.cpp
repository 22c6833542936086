// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/slot_questions.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(questions.answered(1'050), 50);
  EXPECT_FALSE(questions.is_open(7));
  EXPECT_TRUE(questions.is_own(7));  // the answer may be repeated
  EXPECT_FALSE(questions.is_own(8));
}

TEST(SlotQuestions, an_answer_to_a_repeated_question_measures_nothing) {
  SlotQuestions questions;
  questions.ask(7, 1'000, kInterval, 0, 2);
  ASSERT_TRUE(questions.due(1'100));
  EXPECT_TRUE(questions.again(1'100));
  EXPECT_EQ(questions.answered(1'150), 0);
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

}  // namespace
}  // namespace stp::test
