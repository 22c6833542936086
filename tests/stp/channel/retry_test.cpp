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
