// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/loss_estimate.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

// protocol: 10.10
TEST(LossEstimate, while_nothing_is_known_blocks_are_short) {
  const LossEstimate loss;
  EXPECT_EQ(loss.block_stus_log2(10), 6U);  // 64 KiB
  EXPECT_EQ(loss.block_stus_log2(13), 3U);
  EXPECT_EQ(loss.block_stus_log2(16), 3U);  // 8 STUs at least
  EXPECT_EQ(loss.block_stus_log2(31), 3U);
}

// protocol: 10.10
TEST(LossEstimate, without_loss_blocks_are_as_long_as_may_be) {
  LossEstimate loss;
  loss.observe(255, 0);
  EXPECT_EQ(loss.block_stus_log2(10), 6U) << "too few to know";
  loss.observe(1, 0);
  EXPECT_EQ(loss.block_stus_log2(10), 15U);
  EXPECT_EQ(loss.rate(), 0.0);
}

// protocol: 10.10
TEST(LossEstimate, the_rate_of_a_steady_loss_is_found_and_blocks_fit_it) {
  LossEstimate loss;
  for (std::uint32_t i = 1; i <= 500; ++i) loss.observe(99, i);  // one STU of a hundred
  EXPECT_NEAR(loss.rate(), 0.01, 0.0001);
  // A CTS costs half an STU: 6 % of a Block of 8 and 3 % of one of 16. Repeats cost 4 % and 8 %.
  EXPECT_EQ(loss.block_stus_log2(10), 3U);
}

TEST(LossEstimate, a_single_loss_after_much_traffic_changes_little) {
  LossEstimate loss;
  for (int i = 0; i < 100; ++i) loss.observe(1'000, 0);
  loss.observe(1, 1);
  EXPECT_LT(loss.rate(), 0.001);
  EXPECT_GT(loss.rate(), 0.0);
}

TEST(LossEstimate, if_all_is_lost_a_block_is_one_stu) {
  LossEstimate loss;
  for (std::uint32_t i = 1; i < 10; ++i) loss.observe(0, 100 * i);
  EXPECT_NEAR(loss.rate(), 1.0, 0.0001);
  EXPECT_EQ(loss.block_stus_log2(10), 0U);
  for (int i = 0; i < 100; ++i) loss.observe(256, 900);
  EXPECT_LT(loss.rate(), 0.0001) << "what is long ago counts less and less";
}

}  // namespace
}  // namespace stp::test
