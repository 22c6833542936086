// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/ping.h"

#include <gtest/gtest.h>

namespace stp::stpctl {
namespace {

TEST(RoundTripTimes, AreNoneBeforeTheFirstAnswer) {
  const RoundTrips none;
  EXPECT_EQ(none.count(), 0U);
  EXPECT_EQ(none.average(), 0U);
  EXPECT_EQ(none.percentile(99), 0U);
}

TEST(RoundTripTimes, OfAHundredTheLastButOneIsTheNinetyNinthPercentile) {
  RoundTrips times;
  for (Time t = 100; t >= 1; --t) times.add(t);
  EXPECT_EQ(times.min(), 1U);
  EXPECT_EQ(times.max(), 100U);
  EXPECT_EQ(times.average(), 50U);
  EXPECT_EQ(times.percentile(50), 50U);
  EXPECT_EQ(times.percentile(99), 99U);
  EXPECT_EQ(times.percentile(100), 100U);
}

TEST(RoundTripTimes, OfOneIsEveryPercentile) {
  RoundTrips times;
  times.add(7);
  EXPECT_EQ(times.percentile(1), 7U);
  EXPECT_EQ(times.percentile(99), 7U);
}

TEST(RoundTripTimes, PercentilesForgetWhatIsLongAgoAndTheExtremesDoNot) {
  RoundTrips times;
  times.add(1'000);
  for (std::size_t i = 0; i < RoundTrips::kKept; ++i) times.add(5);
  EXPECT_EQ(times.percentile(100), 5U);
  EXPECT_EQ(times.max(), 1'000U);
  EXPECT_EQ(times.count(), RoundTrips::kKept + 1);
}

}  // namespace
}  // namespace stp::stpctl
