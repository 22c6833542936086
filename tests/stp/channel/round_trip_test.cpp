// SPDX-License-Identifier: BSD-3-Clause
#include "stp/channel/round_trip.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

// protocol: 5.20
TEST(RoundTrip, the_first_sample_counts_whole_and_later_ones_an_eighth) {
  RoundTrip trip;
  EXPECT_EQ(trip.smoothed(), RoundTrip::kInitial);
  EXPECT_EQ(trip.timeout(), RoundTrip::kInitial);
  trip.sample(8 * kMillisecond);
  EXPECT_EQ(trip.smoothed(), 8 * kMillisecond);
  EXPECT_EQ(trip.timeout(), 8 * kMillisecond + 4 * (4 * kMillisecond));
  trip.sample(16 * kMillisecond);
  EXPECT_EQ(trip.smoothed(), 9 * kMillisecond);
  // Variation: 3/4 of 4 ms and 1/4 of 8 ms.
  EXPECT_EQ(trip.timeout(), 9 * kMillisecond + 4 * (5 * kMillisecond));
}

// protocol: 5.20
TEST(RoundTrip, a_timeout_stays_within_its_bounds) {
  RoundTrip fast;
  for (int i = 0; i < 100; ++i) fast.sample(100);
  EXPECT_EQ(fast.timeout(), RoundTrip::kMinimum);
  fast.sample(0);
  EXPECT_GT(fast.smoothed(), 0U) << "it is known";
  RoundTrip held_up;
  held_up.sample(kMillisecond);
  held_up.sample(800 * kMillisecond);  // the peer was not scheduled
  EXPECT_EQ(held_up.timeout(), RoundTrip::kLongestPause);
  RoundTrip slow;
  slow.sample(100 * kMillisecond);
  EXPECT_EQ(slow.timeout(), 300 * kMillisecond) << "a long way is no pause";
  slow.sample(900 * kMillisecond);
  EXPECT_EQ(slow.timeout(), 400 * kMillisecond);
  RoundTrip farthest;
  farthest.sample(5 * kSecond);
  EXPECT_EQ(farthest.timeout(), RoundTrip::kMaximum);
}

}  // namespace
}  // namespace stp::test
