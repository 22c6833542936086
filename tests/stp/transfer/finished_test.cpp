// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/finished.h"

#include "tests/stp/transfer/parts.h"

namespace stp::test {
namespace {

class FinishedTest : public Parts {};

// protocol: 9.24, 10.2
TEST_F(FinishedTest, requests_start_nothing_when_they_are_repeated) {
  EXPECT_FALSE(finished.is_over(5, Op::kRequestAnswer));
  finished.remember(5);
  EXPECT_TRUE(finished.is_over(5, Op::kRequestAnswer));
  EXPECT_FALSE(next()) << "what was not refused is not refused later";
}

TEST_F(FinishedTest, requests_that_were_refused_are_refused_again) {
  finished.refuse(Op::kRequestAnswer, 5);
  ASSERT_TRUE(next());
  EXPECT_TRUE(finished.is_over(5, Op::kRequestAnswer));
  const auto again = next();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->has(wire::flag::kReject));
  EXPECT_EQ(wire::decode_as<wire::RequestAnswer>(*again).i_id, 5U);
}

TEST_F(FinishedTest, requests_are_forgotten_when_thousands_came_after_them) {
  for (std::uint32_t i = 1; i <= 4'097; ++i) finished.remember(i);
  EXPECT_FALSE(finished.is_over(1, Op::kRequestAnswer));
  EXPECT_TRUE(finished.is_over(2, Op::kRequestAnswer));
  EXPECT_TRUE(finished.is_over(4'097, Op::kRequestAnswer));
}

}  // namespace
}  // namespace stp::test
