// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/known_peers.h"

#include <gtest/gtest.h>

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
