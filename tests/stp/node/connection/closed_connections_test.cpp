// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/closed_connections.h"

#include <gtest/gtest.h>

namespace stp::test::closed_connections_test {
namespace {

constexpr Time kMemory = ClosedConnections::kMemory;

PeerName peer(std::uint32_t key) {
  return {.mac = MacAddr::from_u64(0x020000000001), .port = 7, .key = key};
}

// protocol: 5.10
TEST(ClosedConnections, a_peer_is_known_by_all_of_its_name_for_a_while) {
  ClosedConnections closed;
  EXPECT_FALSE(closed.contains(peer(1), 0));
  closed.remember(peer(1), 100);
  EXPECT_TRUE(closed.contains(peer(1), 100));
  EXPECT_TRUE(closed.contains(peer(1), 100 + kMemory - 1));
  EXPECT_FALSE(closed.contains(peer(2), 100));
  auto other = peer(1);
  other.port = 8;
  EXPECT_FALSE(closed.contains(other, 100));
  other = peer(1);
  other.mac = MacAddr::from_u64(0x020000000002);
  EXPECT_FALSE(closed.contains(other, 100));
  EXPECT_FALSE(closed.contains(peer(1), 100 + kMemory));
}

TEST(ClosedConnections, one_that_closes_again_is_remembered_anew) {
  ClosedConnections closed;
  closed.remember(peer(1), 0);
  closed.remember(peer(1), kMemory);  // the first memory of it has just passed
  EXPECT_TRUE(closed.contains(peer(1), 2 * kMemory - 1));
  EXPECT_FALSE(closed.contains(peer(1), 2 * kMemory));
}

// protocol: 5.10
TEST(ClosedConnections, where_there_is_no_room_the_oldest_is_forgotten) {
  ClosedConnections closed;
  const auto most = static_cast<std::uint32_t>(ClosedConnections::kCapacity);
  for (std::uint32_t key = 0; key <= most; ++key) closed.remember(peer(key), key);
  EXPECT_FALSE(closed.contains(peer(0), most));
  EXPECT_TRUE(closed.contains(peer(1), most));
  EXPECT_TRUE(closed.contains(peer(most), most));
}

// A call forgets a few at a time, so some stay that have passed. They count no more.
TEST(ClosedConnections, many_that_pass_at_once_are_all_forgotten) {
  ClosedConnections closed;
  for (std::uint32_t key = 0; key < 1'000; ++key) closed.remember(peer(key), 0);
  closed.remember(peer(999), kMemory);
  EXPECT_TRUE(closed.contains(peer(999), kMemory));
  for (std::uint32_t key = 0; key < 1'000; ++key)
    ASSERT_EQ(closed.contains(peer(999 - key), kMemory), key == 0) << key;
}

}  // namespace
}  // namespace stp::test::closed_connections_test
