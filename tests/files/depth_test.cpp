// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/depth.h"

#include <gtest/gtest.h>

namespace stp::files {
namespace {

using std::chrono::milliseconds;

TEST(Reserve, leaves_half_of_what_is_left_for_whoever_comes_later) {
  Reserve reserve(1'000);
  EXPECT_FALSE(reserve.take(501));
  EXPECT_TRUE(reserve.take(500));
  EXPECT_FALSE(reserve.take(251));
  EXPECT_TRUE(reserve.take(250));
  reserve.give_back(500);
  EXPECT_TRUE(reserve.take(375));
}

TEST(Reserve, has_back_what_a_connection_had_when_that_ends) {
  Reserve reserve(1'000);
  {
    Share share(&reserve);
    EXPECT_TRUE(share.take(500));
    EXPECT_TRUE(share.take(200));
    EXPECT_FALSE(share.take(200));
    share.give_back(200);
  }
  EXPECT_TRUE(reserve.take(500));
}

TEST(Reserve, is_a_small_part_of_the_memory_that_there_is) {
  EXPECT_EQ(Reserve::part_of(std::uint64_t{64} << 30), std::size_t{256} << 20);
  EXPECT_EQ(Reserve::part_of(256 << 20), 16U << 20) << "in a group with that limit";
  EXPECT_EQ(Reserve::usual(), Reserve::part_of(os::memory_to_be_had()));
  EXPECT_FALSE(Share(nullptr).take(1));
}

TEST(Path, is_as_long_as_what_arrived_soonest_has_taken) {
  Path path;
  EXPECT_FALSE(path.is_long()) << "nobody knows";
  EXPECT_FALSE(path.has_room(milliseconds(0)));
  path.took(milliseconds(50));
  path.took(milliseconds(40));
  path.took(milliseconds(900));
  EXPECT_EQ(path.round_trip(), milliseconds(40));
  EXPECT_TRUE(path.has_room(milliseconds(159)));
  EXPECT_FALSE(path.has_room(milliseconds(160))) << "it waits somewhere";
  path.took(milliseconds(1));
  EXPECT_FALSE(path.is_long());
  EXPECT_FALSE(path.has_room(milliseconds(1)));
}

struct InflowTest : ::testing::Test {
  InflowTest() { path.took(milliseconds(100)); }
  bool fills(std::size_t bytes, int at) {
    return inflow.fills(1'000, bytes, begin + milliseconds(at), path);
  }
  const TimePoint begin{std::chrono::hours(1)};
  Path path;
  Inflow inflow;
};

TEST_F(InflowTest, fills_half_of_the_room_in_a_round_trip) {
  fills(1, 0);
  EXPECT_FALSE(fills(300, 50));
  EXPECT_TRUE(fills(200, 100));
  EXPECT_FALSE(fills(400, 110)) << "no round trip has passed since";
  EXPECT_FALSE(fills(99, 200));
  EXPECT_TRUE(fills(1'000, 400)) << "half of it in each of two round trips";
}

TEST_F(InflowTest, counts_by_the_time_in_which_it_came) {
  fills(1, 0);
  EXPECT_FALSE(fills(1'000, 1'000)) << "that is 100 in a round trip";
  path.took(milliseconds(1));
  EXPECT_FALSE(fills(1'000, 2'000));
  EXPECT_FALSE(fills(100'000, 2'100)) << "a short path needs no more";
}

}  // namespace
}  // namespace stp::files
