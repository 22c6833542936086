// SPDX-License-Identifier: BSD-3-Clause
// What may be granted along a path, and who waits for room on it (section 13).
#include "stp/node/inbound/path.h"

#include <gtest/gtest.h>

namespace stp {
namespace {

constexpr std::uint64_t kPathStu = 1'024, kPathWindow = 16'384;

class PathTest : public ::testing::Test {
 protected:
  PathTable table;
  PathTable::Share path = table.find(MacAddr::from_u64(1), kPathStu);
};

TEST_F(PathTest, connections_with_one_station_share_it) {
  EXPECT_EQ(table.find(MacAddr::from_u64(1), kPathStu), path);
  EXPECT_NE(table.find(MacAddr::from_u64(2), kPathStu), path);
}

TEST_F(PathTest, ends_with_the_last_connection) {
  path->grant(kPathStu);
  path.reset();
  path = table.find(MacAddr::from_u64(1), kPathStu);
  EXPECT_TRUE(path->has_room(2 * kPathWindow)) << "a new one";
}

// protocol: 13.9
TEST_F(PathTest, has_room_for_the_window_and_for_anything_while_it_is_empty) {
  EXPECT_TRUE(path->has_room(2 * kPathWindow));
  path->grant(kPathStu);
  EXPECT_TRUE(path->has_room(kPathWindow - kPathStu));
  EXPECT_FALSE(path->has_room(kPathWindow));
}

// protocol: 13.9
TEST_F(PathTest, those_that_wait_go_in_turn_when_there_is_room) {
  path->grant(kPathWindow);
  path->wait(7, 2 * kPathStu);
  path->wait(8, 2 * kPathStu);
  EXPECT_TRUE(table.roomy().empty());
  path->settle(kPathStu);
  EXPECT_TRUE(table.roomy().empty());
  path->settle(2 * kPathStu);
  ASSERT_FALSE(table.roomy().empty());
  EXPECT_EQ(path->next(), 7U);
  EXPECT_EQ(path->next(), kNoneId) << "there is no room for both";
  EXPECT_TRUE(table.roomy().empty());
  path->grant(2 * kPathStu);
  path->settle(2 * kPathStu);
  EXPECT_EQ(path->next(), 8U);
}

// protocol: 13.13
TEST_F(PathTest, blocks_suit_the_window) {
  EXPECT_EQ(path->block_log2(), 12U) << "nothing is known";
  path->arrived(kPathStu, kMillisecond, kSecond);
  for (unsigned i = 1; i < 40; ++i) path->lost(kSecond + i * kSecond);
  EXPECT_EQ(path->block_log2(), 10U) << "an STU";
}

}  // namespace
}  // namespace stp
