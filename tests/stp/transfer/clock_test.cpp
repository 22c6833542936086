// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/clock.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

TEST(Clock, never_goes_back) {
  Clock clock;
  EXPECT_EQ(clock.tell(5), 5U);
  EXPECT_EQ(clock.tell(3), 5U);
  EXPECT_EQ(clock.now(), 5U);
}

TEST(Clock, is_due_when_the_first_one_asked_for) {
  Clock clock;
  EXPECT_EQ(clock.deadline(), kNever);
  clock.due_at(Alarm::kPuts, 20);
  clock.due_at(Alarm::kPuts, 10);
  clock.due_at(Alarm::kGets, 30);
  EXPECT_EQ(clock.deadline(), 10U);
  clock.stop();
  EXPECT_EQ(clock.deadline(), kNever);
}

TEST(Clock, knows_which_mechanism_is_due) {
  Clock clock;
  clock.due_at(Alarm::kPuts, 10);
  clock.due_at(Alarm::kGets, 30);
  clock.due_at(Alarm::kAsksOut, 20);
  clock.tell(20);
  EXPECT_TRUE(clock.is_due(Alarm::kPuts));
  EXPECT_TRUE(clock.is_due(Alarm::kAsksOut));
  EXPECT_FALSE(clock.is_due(Alarm::kGets));
  EXPECT_FALSE(clock.is_due(Alarm::kOutbox));
  clock.stop(Alarm::kGets);
  EXPECT_EQ(clock.deadline(), 10U) << "not the first one";
  clock.stop(Alarm::kPuts);
  EXPECT_EQ(clock.deadline(), 20U) << "the next one";
  clock.stop(Alarm::kAsksOut);
  EXPECT_EQ(clock.deadline(), kNever);
}

TEST(Clock, is_idle_while_no_mechanism_waits) {
  Clock clock;
  EXPECT_TRUE(clock.is_idle());
  clock.due_at(Alarm::kPuts, 10);
  clock.due_at(Alarm::kOutbox, kNever);
  EXPECT_FALSE(clock.is_idle());
  clock.stop(Alarm::kPuts);
  EXPECT_FALSE(clock.is_idle());
  EXPECT_EQ(clock.deadline(), kNever);
  clock.stop(Alarm::kOutbox);
  EXPECT_TRUE(clock.is_idle());
  clock.due_at(Alarm::kPuts, 50);
  EXPECT_EQ(clock.deadline(), 50U) << "what was asked for before it stopped is forgotten";
  clock.tell(20);
  EXPECT_FALSE(clock.is_due(Alarm::kPuts));
}

}  // namespace
}  // namespace stp::test
