// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/peers.h"

#include <gtest/gtest.h>

#include <set>

#include "dpdk_port/link/engine.h"

namespace stp::port::peers_test {
namespace {

InternetAddress address(const std::string& text, std::uint16_t port = wire::kUdpPort) {
  auto out = parse_internet_address(text).value();
  out.port = port;
  return out;
}
// One of many.
InternetAddress stranger(unsigned i) {
  auto out = address("2001:db8::");
  for (std::size_t at = 0; at < 4; ++at) out.ip[12 + at] = static_cast<std::uint8_t>(i >> 8 * at);
  return out;
}

TEST(Peers, AnIpv4AddressWithTheUsualPortIsItsOwnName) {
  Peers peers(system_random());
  const auto name = peers.name_of(address("10.0.0.5"));
  EXPECT_EQ(to_string(name), "02:04:0a:00:00:05");
  EXPECT_EQ(peers.look_up(name), address("10.0.0.5")) << "nobody has told the table";
  EXPECT_EQ(peers.heard(address("10.0.0.5"), 0), name);
  EXPECT_EQ(peers.strangers(), 0U);
}

TEST(Peers, NamesAreThoseOfSingleStationsAndDiffer) {
  Peers peers(system_random());
  std::set<MacAddr> names;
  for (unsigned i = 0; i < 2'000; ++i) {
    for (const auto& each : {stranger(i), address("10.0.0.5", static_cast<std::uint16_t>(i + 1))}) {
      const auto name = peers.name_of(each);
      EXPECT_FALSE(name.is_group() || name.is_zero());
      EXPECT_NE(to_string(name).substr(0, 6), "02:04:");
      names.insert(name);
    }
  }
  EXPECT_EQ(names.size(), 4'000U);
}

TEST(Peers, NobodyElseCanComputeAName) {
  Peers one(system_random()), other(system_random());
  EXPECT_NE(one.name_of(stranger(1)), other.name_of(stranger(1)));
}

TEST(Peers, LinkLocalAddressesBelongToAnInterface) {
  Peers peers(system_random());
  auto a = address("fe80::1");
  EXPECT_FALSE(peers.heard(a, 0)) << "without one";
  a.scope = 1;
  auto b = a;
  b.scope = 2;
  EXPECT_NE(peers.heard(a, 0), peers.heard(b, 0));
}

// protocol: 13.7
TEST(Peers, NoHostHasTheseAddresses) {
  Peers peers(system_random());
  for (const char* text : {"0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "::", "ff02::1"})
    EXPECT_FALSE(peers.heard(address(text), 0)) << text;
  EXPECT_FALSE(peers.heard(address("10.0.0.5", 0), 0)) << "a port that cannot be answered";
  EXPECT_FALSE(peers.route_to(MacAddr{{2, 4, 224, 0, 0, 1}}, true, 0));
  EXPECT_FALSE(peers.route_to(MacAddr{{2, 4, 255, 255, 255, 255}}, true, 0));
}

// protocol: 13.14
TEST(Peers, NetworksOfIpv6AndHostsOfIpv4AreTheSourcesThatCount) {
  Peers peers(system_random());
  const auto source = [&](const InternetAddress& from) {
    return peers.source_of(peers.heard(from, 0).value());
  };
  EXPECT_EQ(source(address("2001:db8::1")), source(address("2001:db8::ffff:1:2:3", 9)));
  EXPECT_NE(source(address("2001:db8::1")), source(address("2001:db8:0:1::1")));
  EXPECT_EQ(source(address("10.0.0.5")), source(address("10.0.0.5", 9)));
  EXPECT_NE(source(address("10.0.0.5")), source(address("10.0.0.6")));
  auto near = address("fe80::1"), other = address("fe80::2");
  near.scope = 1;
  other.scope = 2;
  EXPECT_NE(source(near), source(other)) << "another interface";
  other.scope = 1;
  EXPECT_EQ(source(near), source(other));
}

// protocol: 13.14
TEST(Peers, NetworksOfProvidersShareThePlacesOfListeners) {
  Peers peers(system_random());
  const auto network = [&](const InternetAddress& from) {
    return peers.network_of(peers.heard(from, 0).value());
  };
  EXPECT_EQ(network(address("10.0.0.5")), network(address("10.0.255.6", 9)));
  EXPECT_NE(network(address("10.0.0.5")), network(address("10.1.0.5")));
  EXPECT_EQ(network(address("2001:db8::1")), network(address("2001:db8:ffff:1::2", 9)));
  EXPECT_NE(network(address("2001:db8::1")), network(address("2001:db9::1")));
}

TEST(Peers, StrangersGiveWayToEachOtherOnly) {
  Peers peers(system_random());
  const auto known = peers.know(stranger(1'000'000), 0).value();
  const auto met = peers.heard(stranger(1'000'001), 0).value();
  ASSERT_TRUE(peers.route_to(met, true, 0)) << "the Node has a connection with it";
  const auto oldest = peers.heard(stranger(0), 0).value();
  for (unsigned i = 1; i < 10'000; ++i) ASSERT_TRUE(peers.heard(stranger(i), i * kSecond));
  EXPECT_EQ(peers.strangers(), Peers::kMostStrangers);
  EXPECT_EQ(peers.known(), 2U);
  EXPECT_EQ(peers.displaced(), 10'000 - Peers::kMostStrangers);
  EXPECT_TRUE(peers.route_to(known, false, 0));
  EXPECT_TRUE(peers.route_to(met, false, 0));
  EXPECT_FALSE(peers.route_to(oldest, false, 0));
  EXPECT_EQ(peers.heard(stranger(0), 0), oldest) << "it has the same name again";
}

TEST(Peers, WhoIsHeardStaysLongest) {
  Peers peers(system_random());
  const auto busy = peers.heard(stranger(0), 0).value();
  Time now = 0;
  for (unsigned i = 1; i < 3 * Peers::kMostStrangers; ++i) {
    now += kSecond;
    ASSERT_TRUE(peers.heard(stranger(i), now));
    ASSERT_TRUE(peers.heard(stranger(0), now));
  }
  EXPECT_TRUE(peers.route_to(busy, false, now));
}

TEST(Peers, TheKnownAreBoundedToo) {
  Peers peers(system_random());
  const auto first = peers.know(stranger(0), 0).value();
  for (unsigned i = 1; i < Peers::kMostNamed + 10; ++i) ASSERT_TRUE(peers.know(stranger(i), 0));
  EXPECT_EQ(peers.known(), Peers::kMostNamed);
  EXPECT_FALSE(peers.route_to(first, false, 0));
  const auto met = peers.heard(stranger(1'000'000), 0).value();
  EXPECT_TRUE(peers.route_to(met, true, 0));
  EXPECT_EQ(peers.known(), Peers::kMostNamed + 1);
  EXPECT_EQ(peers.strangers(), 0U);
}

TEST(Peers, OnlyWhatTakesAPlaceIsNew) {
  Peers peers(system_random());
  bool is_new = true;
  const auto know = [&](const InternetAddress& host) {
    EXPECT_TRUE(peers.know(host, 0, {}, &is_new));
    return is_new;
  };
  EXPECT_TRUE(know(stranger(0)));
  EXPECT_FALSE(know(stranger(0))) << "it has its place";
  ASSERT_TRUE(peers.heard(stranger(1), 0));
  EXPECT_TRUE(know(stranger(1))) << "before, it was a stranger";
  EXPECT_FALSE(know(stranger(1)));
}

// A program may name as many addresses as it likes.
TEST(Peers, NobodyNamesAConnectedOneAway) {
  Peers peers(system_random());
  const auto named = peers.know(stranger(1'000'000), 0).value();
  const auto caller = peers.heard(stranger(1'000'001), 0).value();
  for (const auto& each : {named, caller}) ASSERT_TRUE(peers.route_to(each, true, 0));
  for (unsigned i = 0; i < Peers::kMostNamed + 10; ++i)
    ASSERT_TRUE(peers.know(stranger(i), kSecond));
  EXPECT_TRUE(peers.route_to(named, false, kSecond));
  EXPECT_TRUE(peers.route_to(caller, false, kSecond));
  EXPECT_EQ(peers.displaced(), 10U);
}

constexpr std::uint16_t kOtherPort = 9000;

class Recent : public testing::Test {
 protected:
  const RecentSource::Station* hear(const InternetAddress& from, Time now,
                                    const OwnAddress& own = {}) {
    sockaddr_storage name{};
    const auto length = to_socket_address(from, AF_INET6, name);
    return source.heard(name, length, own, now);
  }

  Peers peers{system_random()};
  RecentSource source{peers};
  RecentGoal goal{peers, AF_INET6};
};

TEST_F(Recent, IsWhatTheTableSays) {
  for (const unsigned i : {1U, 1U, 2U, 1U}) {
    const auto* const heard = hear(stranger(i), 0);
    ASSERT_NE(heard, nullptr);
    EXPECT_EQ(heard->name, peers.name_of(stranger(i)));
    EXPECT_EQ(heard->address, stranger(i));
    const auto* const found = goal.find(heard->name, false, 0);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->address, stranger(i));
    EXPECT_EQ(from_socket_address(reinterpret_cast<const sockaddr*>(&found->name)), stranger(i));
  }
}

TEST_F(Recent, PortsOfAHostAreOtherStations) {
  auto other = stranger(1);
  other.port = kOtherPort;
  const auto first = hear(stranger(1), 0)->name;
  EXPECT_NE(hear(other, 0)->name, first);
}

// Whoever sends to another address of this host, or only seems to, changes nothing for the station
// that is heard at the usual one.
// protocol: 13.4
TEST_F(Recent, WhatComesToAnotherAddressOfThisHostIsFromAnotherStation) {
  const OwnAddress second{address("10.2.0.1").ip};
  for (const auto& from : {address("10.0.0.5"), stranger(1)}) {
    const auto usual = hear(from, 0)->name, other = hear(from, 0, second)->name;
    EXPECT_NE(other, usual);
    EXPECT_EQ(goal.find(other, false, 0)->own, second);
    EXPECT_EQ(goal.find(other, false, 0)->address, from);
    EXPECT_EQ(goal.find(usual, false, 0)->own, OwnAddress{});
    EXPECT_EQ(hear(from, 0)->name, usual);
    EXPECT_EQ(peers.source_of(other), peers.source_of(usual)) << "of the same host";
  }
}

TEST_F(Recent, NobodyIsThereThatTheTableRefuses) {
  ASSERT_NE(hear(stranger(1), 0), nullptr);
  EXPECT_EQ(hear(parse_internet_address("ff02::1").value(), 0), nullptr) << "a group";
  EXPECT_EQ(goal.find(peers.name_of(stranger(2)), false, 0), nullptr);
  RecentGoal ipv4(peers, AF_INET);
  EXPECT_EQ(ipv4.find(peers.name_of(stranger(1)), false, 0), nullptr) << "of the other family";
  EXPECT_EQ(ipv4.find(peers.name_of(stranger(1)), false, 0), nullptr);
}

TEST_F(Recent, WhoIsHeardAndAnsweredStaysInTheTable) {
  const auto busy = hear(stranger(0), 0)->name;
  Time now = 0;
  for (unsigned i = 1; i < 3 * Peers::kMostStrangers; ++i) {
    now += Peers::kUse / 2;
    ASSERT_TRUE(peers.heard(stranger(i), now));
    ASSERT_TRUE(peers.look_up(busy)) << "not even for a moment somebody else displaces it: " << i;
    ASSERT_NE(hear(stranger(0), now), nullptr);
  }
}

TEST_F(Recent, WhoWasDisplacedIsEnteredAgain) {
  const auto name = hear(stranger(0), 0)->name;
  ASSERT_NE(goal.find(name, false, 0), nullptr);
  for (unsigned i = 1; i <= Peers::kMostStrangers; ++i) ASSERT_TRUE(peers.heard(stranger(i), 0));
  ASSERT_FALSE(peers.look_up(name));
  EXPECT_EQ(goal.find(name, false, 0), nullptr) << "as the table says";
  ASSERT_NE(hear(stranger(0), 0), nullptr);
  EXPECT_TRUE(peers.look_up(name));
}

TEST_F(Recent, WhoeverIsAcceptedIsNoStrangerAnyMore) {
  const auto name = hear(stranger(0), 0)->name;
  ASSERT_NE(goal.find(name, false, 0), nullptr);
  EXPECT_EQ(peers.strangers(), 1U);
  ASSERT_NE(goal.find(name, true, 0), nullptr);
  EXPECT_EQ(peers.strangers(), 0U);
}

}  // namespace
}  // namespace stp::port::peers_test
