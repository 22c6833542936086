// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/known_peers.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/stp/node/mechanisms.h"

namespace stp::test {
namespace {

// protocol: 5.4, 5.10
TEST(KnownPeers, a_requester_is_known_while_it_is_connected_and_for_a_while_after) {
  Mechanisms with;
  KnownPeers peers;
  auto& vc = with.open(1);
  vc.passive = true;
  const auto name = KnownPeers::name_of(vc);
  EXPECT_EQ(peers.find(name), nullptr);
  peers.add(vc);
  EXPECT_EQ(peers.find(name), &vc);
  EXPECT_FALSE(peers.ended_lately(name, 1'000));
  peers.end(vc, true, 1'000);
  EXPECT_EQ(peers.find(name), nullptr);
  EXPECT_TRUE(peers.ended_lately(name, 1'000 + ClosedConnections::kMemory - 1));
  EXPECT_FALSE(peers.ended_lately(name, 1'000 + ClosedConnections::kMemory));
}

TEST(KnownPeers, one_that_never_proved_itself_may_ask_again_at_once) {
  Mechanisms with;
  KnownPeers peers;
  auto& vc = with.open(1);
  vc.passive = true;
  peers.add(vc);
  peers.end(vc, false, 1'000);
  EXPECT_EQ(peers.find(KnownPeers::name_of(vc)), nullptr);
  EXPECT_FALSE(peers.ended_lately(KnownPeers::name_of(vc), 1'000));
}

}  // namespace
}  // namespace stp::test

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

namespace stp::test::refusals_test {
namespace {

constexpr Time kMemory = Refusals::kMemory;

PeerName peer(std::uint32_t key) {
  return {.mac = MacAddr::from_u64(0x020000000001), .port = 7, .key = key};
}
OptionPayload words(std::uint8_t first) {
  std::array<std::byte, wire::kOptionSize> bytes{};
  bytes[0] = std::byte{first};
  return bytes;
}

// protocol: 5.29
TEST(Refusals, a_repeated_request_finds_the_words_of_the_first_answer) {
  Refusals refusals;
  EXPECT_EQ(refusals.find(peer(1), 0), nullptr);
  refusals.remember(peer(1), words(11), 100);
  refusals.remember(peer(2), words(22), 100);
  refusals.remember(peer(1), words(33), 200);  // the same request, answered once more
  ASSERT_NE(refusals.find(peer(1), 200), nullptr);
  EXPECT_EQ(refusals.find(peer(1), 200)->value()[0], std::byte{11});
  ASSERT_NE(refusals.find(peer(2), 200), nullptr);
  EXPECT_EQ(refusals.find(peer(2), 200)->value()[0], std::byte{22});
  EXPECT_NE(refusals.find(peer(1), 100 + kMemory - 1), nullptr);
  EXPECT_EQ(refusals.find(peer(1), 100 + kMemory), nullptr);
}

// protocol: 5.29
TEST(Refusals, where_there_is_no_room_the_oldest_is_forgotten) {
  Refusals refusals;
  const auto most = static_cast<std::uint32_t>(Refusals::kCapacity);
  for (std::uint32_t key = 0; key <= most; ++key) refusals.remember(peer(key), {}, 0);
  EXPECT_EQ(refusals.find(peer(0), 0), nullptr);
  EXPECT_NE(refusals.find(peer(1), 0), nullptr);
  EXPECT_NE(refusals.find(peer(most), 0), nullptr);
}

}  // namespace
}  // namespace stp::test::refusals_test
