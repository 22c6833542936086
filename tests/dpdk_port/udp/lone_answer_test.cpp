// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/lone_answer.h"

#include <gtest/gtest.h>

namespace stp::port::lone_answer_test {
namespace {

TEST(LoneAnswer, IsAskedForMoreOftenUntilItComes) {
  LoneAnswer answer;
  EXPECT_EQ(answer.asks(), 1U);
  answer.sent();
  EXPECT_EQ(answer.asks(), LoneAnswer::kAsks);
  answer.turn(false);
  EXPECT_EQ(answer.asks(), LoneAnswer::kAsks);
  answer.turn(true);
  EXPECT_EQ(answer.asks(), 1U);
}

TEST(LoneAnswer, IsNotAskedForMoreOftenForLong) {
  LoneAnswer answer;
  answer.sent();
  for (unsigned i = 0; i < LoneAnswer::kTurns; ++i) {
    EXPECT_EQ(answer.asks(), LoneAnswer::kAsks) << i;
    answer.turn(false);
  }
  EXPECT_EQ(answer.asks(), 1U);
  answer.turn(false);
  EXPECT_EQ(answer.asks(), 1U);
}

}  // namespace
}  // namespace stp::port::lone_answer_test
