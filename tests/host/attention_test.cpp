// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/attention.h"

#include <gtest/gtest.h>

namespace stp::host {
namespace {

using Rest = Attention::Rest;

constexpr Time kBegin = kSecond;
constexpr os::SharedCoreRule kShared{};

struct AttentionTest : testing::Test {
  AttentionTest() { attention.may_spin(true); }
  Attention attention;
};

TEST_F(AttentionTest, BeginsWithAFrame) {
  EXPECT_FALSE(attention.on());
  attention.turn(0, 0, kBegin);
  EXPECT_FALSE(attention.on());
  attention.turn(1, 0, kBegin);
  EXPECT_TRUE(attention.on());
}

TEST_F(AttentionTest, IsNotForProgramsThatSleepInACall) {
  attention.turn(1, 0, kBegin);
  attention.may_spin(false);
  EXPECT_FALSE(attention.on());
  attention.turn(1, 0, kBegin);
  EXPECT_FALSE(attention.on());
  EXPECT_FALSE(attention.possible());
}

TEST_F(AttentionTest, AFrameBuysABoundedTime) {
  attention.turn(1, 0, kBegin);
  EXPECT_EQ(attention.rest(kBegin), Rest::kYield);
  EXPECT_EQ(attention.rest(kBegin + Attention::kAwake - 1), Rest::kYield);
  EXPECT_EQ(attention.rest(kBegin + Attention::kAwake), Rest::kNap);
  EXPECT_EQ(attention.rest(kBegin + Attention::kNapping - 1), Rest::kNap);
  EXPECT_EQ(attention.rest(kBegin + Attention::kNapping), Rest::kSleep);
}

TEST_F(AttentionTest, AnAnswerProlongsIt) {
  attention.turn(1, 0, kBegin);
  attention.turn(0, 1, kBegin + Attention::kNapping);
  EXPECT_EQ(attention.rest(kBegin + Attention::kNapping), Rest::kYield);
}

TEST_F(AttentionTest, WhoSharesTheCoreNapsForAWhile) {
  attention.turn(1, 0, kBegin);
  attention.yielded(kBegin, kBegin + kShared.late_back);
  EXPECT_EQ(attention.rest(kBegin), Rest::kYield) << "that was soon";
  const auto late = kBegin + kShared.late_back + 1;
  attention.yielded(kBegin, late);
  EXPECT_EQ(attention.rest(late), Rest::kNap);
  attention.turn(1, 0, late + kShared.holds);
  EXPECT_EQ(attention.rest(late + kShared.holds), Rest::kYield) << "perhaps no longer";
}

TEST_F(AttentionTest, EndsForASender) {
  attention.turn(2, 0, kBegin);
  attention.turn(0, 2 * Attention::kPostsPerFrame, kBegin);
  EXPECT_TRUE(attention.on());
  attention.turn(0, 1, kBegin);
  EXPECT_FALSE(attention.on());
}

TEST_F(AttentionTest, WhatManyFramesBuyIsBounded) {
  attention.turn(1'000'000, 0, kBegin);
  attention.turn(0, Attention::kMostPosts, kBegin);
  EXPECT_TRUE(attention.on());
  attention.turn(0, 1, kBegin);
  EXPECT_FALSE(attention.on());
}

}  // namespace
}  // namespace stp::host
