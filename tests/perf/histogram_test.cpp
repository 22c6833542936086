// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/histogram.h"

#include <gtest/gtest.h>

namespace stp::perf {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(Histogram, tells_percentiles_within_half_a_percent) {
  Histogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.add(microseconds(i));
  EXPECT_EQ(histogram.count(), 1000U);
  EXPECT_NEAR(histogram.percentile(50).count(), 500, 2.5);
  EXPECT_NEAR(histogram.percentile(99).count(), 990, 5);
  EXPECT_NEAR(histogram.percentile(99.9).count(), 999, 5);
  EXPECT_NEAR(histogram.mean().count(), 500.5, 0.1);
}

TEST(Histogram, knows_the_ends_exactly_however_far_out) {
  Histogram histogram;
  histogram.add(nanoseconds(1));
  histogram.add(microseconds(3));
  histogram.add(seconds(1000));
  EXPECT_EQ(histogram.min(), nanoseconds(1));
  EXPECT_EQ(histogram.max(), seconds(1000));
  EXPECT_EQ(histogram.percentile(0), nanoseconds(1));
  EXPECT_EQ(histogram.percentile(100), seconds(1000));
}

TEST(Histogram, without_values_has_none) {
  const Histogram histogram;
  EXPECT_EQ(histogram.percentile(50).count(), 0);
  EXPECT_EQ(histogram.mean().count(), 0);
}

}  // namespace
}  // namespace stp::perf
