// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/slot_credit.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

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

}  // namespace
}  // namespace stp::test
