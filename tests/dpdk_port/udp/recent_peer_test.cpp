// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/recent_peer.h"

#include <gtest/gtest.h>

#include "dpdk_port/link/engine.h"

namespace stp::port::recent_peer_test {
namespace {

constexpr std::uint16_t kPort = 8181, kOtherPort = 9000;

// One of many, none of which is its own name.
InternetAddress station(unsigned i) {
  auto out = parse_internet_address("2001:db8::").value();
  for (std::size_t at = 0; at < 4; ++at) out.ip[12 + at] = static_cast<std::uint8_t>(i >> 8 * at);
  out.port = kPort;
  return out;
}

class Recent : public testing::Test {
 protected:
  const RecentSource::Station* hear(const InternetAddress& from, Time now) {
    sockaddr_storage name{};
    const auto length = to_socket_address(from, AF_INET6, name);
    return source.heard(name, length, now);
  }

  Peers peers{system_random()};
  RecentSource source{peers};
  RecentGoal goal{peers, AF_INET6};
};

TEST_F(Recent, IsWhatTheTableSays) {
  for (const unsigned i : {1U, 1U, 2U, 1U}) {
    const auto* const heard = hear(station(i), 0);
    ASSERT_NE(heard, nullptr);
    EXPECT_EQ(heard->name, peers.name_of(station(i)));
    EXPECT_EQ(heard->address, station(i));
    const auto* const found = goal.find(heard->name, false, 0);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->address, station(i));
    EXPECT_EQ(from_socket_address(reinterpret_cast<const sockaddr*>(&found->name)), station(i));
  }
}

TEST_F(Recent, PortsOfAHostAreOtherStations) {
  auto other = station(1);
  other.port = kOtherPort;
  const auto first = hear(station(1), 0)->name;
  EXPECT_NE(hear(other, 0)->name, first);
}

TEST_F(Recent, NobodyIsThereThatTheTableRefuses) {
  ASSERT_NE(hear(station(1), 0), nullptr);
  EXPECT_EQ(hear(parse_internet_address("ff02::1").value(), 0), nullptr) << "a group";
  EXPECT_EQ(goal.find(peers.name_of(station(2)), false, 0), nullptr);
  RecentGoal ipv4(peers, AF_INET);
  EXPECT_EQ(ipv4.find(peers.name_of(station(1)), false, 0), nullptr) << "of the other family";
  EXPECT_EQ(ipv4.find(peers.name_of(station(1)), false, 0), nullptr);
}

TEST_F(Recent, WhoIsHeardAndAnsweredStaysInTheTable) {
  const auto busy = hear(station(0), 0)->name;
  Time now = 0;
  for (unsigned i = 1; i < 3 * Peers::kMostStrangers; ++i) {
    now += Peers::kUse / 2;
    ASSERT_TRUE(peers.heard(station(i), now));
    ASSERT_NE(hear(station(0), now), nullptr);
  }
  EXPECT_TRUE(peers.look_up(busy));
}

TEST_F(Recent, WhoWasDisplacedIsEnteredAgain) {
  const auto name = hear(station(0), 0)->name;
  ASSERT_NE(goal.find(name, false, 0), nullptr);
  for (unsigned i = 1; i <= Peers::kMostStrangers; ++i) ASSERT_TRUE(peers.heard(station(i), 0));
  ASSERT_FALSE(peers.look_up(name));
  EXPECT_EQ(goal.find(name, false, 0), nullptr) << "as the table says";
  ASSERT_NE(hear(station(0), 0), nullptr);
  EXPECT_TRUE(peers.look_up(name));
}

TEST_F(Recent, WhoeverIsAcceptedIsNoStrangerAnyMore) {
  const auto name = hear(station(0), 0)->name;
  ASSERT_NE(goal.find(name, false, 0), nullptr);
  EXPECT_EQ(peers.strangers(), 1U);
  ASSERT_NE(goal.find(name, true, 0), nullptr);
  EXPECT_EQ(peers.strangers(), 0U);
}

}  // namespace
}  // namespace stp::port::recent_peer_test
