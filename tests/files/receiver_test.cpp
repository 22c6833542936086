// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/receiver.h"

#include <gtest/gtest.h>

#include "libst/managed/host_of_peer.h"

namespace stp::files {
namespace {

TEST(Host, AllUdpPortsOfAnAddressAreOneHost) {
  EXPECT_EQ(managed::host_of_station("10.0.0.5/8181"), managed::host_of_station("10.0.0.5/40000"));
  EXPECT_NE(managed::host_of_station("10.0.0.5/8181"), managed::host_of_station("10.0.0.6/8181"));
}

TEST(Host, AllAddressesOfAnIpv6NetworkAreOneHost) {
  EXPECT_EQ(managed::host_of_station("[2001:db8:0:1::5]/8181"),
            managed::host_of_station("[2001:db8:0:1:ffff::7]/9"));
  EXPECT_NE(managed::host_of_station("[2001:db8:0:1::5]/8181"),
            managed::host_of_station("[2001:db8:0:2::5]/8181"));
  EXPECT_NE(managed::host_of_station("[fe80::1%eth0]/8181"),
            managed::host_of_station("[fe80::2%eth0]/8181"))
      << "all begin alike";
}

TEST(Host, AStationOnEthernetIsAHost) {
  EXPECT_EQ(managed::host_of_station("[02:00:00:00:00:01]"), "[02:00:00:00:00:01]");
}

TEST(Places, OfAHostAreMoreThanItsShareOnlyIfOthersHaveLess) {
  const std::vector<std::string> two{"a", "a", "a", "a", "b", "b", "b", "b"};
  EXPECT_TRUE(has_more_than_its_share(two, "a", "newcomer"));
  EXPECT_TRUE(has_more_than_its_share(two, "b", "newcomer"));
  EXPECT_FALSE(has_more_than_its_share(two, "a", "b"));
  const std::vector<std::string> many{"a", "a", "a", "a", "a", "a", "b", "c"};
  EXPECT_TRUE(has_more_than_its_share(many, "a", "newcomer"));
  EXPECT_FALSE(has_more_than_its_share(many, "b", "newcomer"));
  EXPECT_FALSE(has_more_than_its_share({"a", "b"}, "a", "newcomer"));
  EXPECT_FALSE(has_more_than_its_share({"a", "a"}, "a", "a"));
}

constexpr Duration kPatience = std::chrono::seconds(5);

// It sends something every second.
Placed slow_one(const std::string& host, std::uint64_t bytes) {
  return {host, std::chrono::seconds(1), std::chrono::seconds(1), std::chrono::minutes(5), bytes};
}

TEST(Places, OfAHostAboveItsShareTheSlowestGivesWay) {
  const std::vector<Placed> two_hosts{slow_one("a", 300), slow_one("b", 100), slow_one("a", 200),
                                      slow_one("b", 400)};
  EXPECT_EQ(who_gives_way(two_hosts, {"c", 2 * kPatience}, kPatience), (Leaver{1, Leave::kSlow}));
  EXPECT_EQ(who_gives_way(two_hosts, {"c", kPatience}, kPatience), std::nullopt) << "not yet";
  EXPECT_EQ(who_gives_way(two_hosts, {"a", 2 * kPatience}, kPatience), std::nullopt)
      << "who has as much as others waits";
  auto anew = two_hosts;
  anew[1].age = std::chrono::seconds(1);
  EXPECT_EQ(who_gives_way(anew, {"c", 2 * kPatience}, kPatience), (Leaver{2, Leave::kSlow}));
  anew[3].silence = anew[3].idleness = 2 * kPatience;
  EXPECT_EQ(who_gives_way(anew, {"c", kPatience}, kPatience), (Leaver{3, Leave::kSilent}))
      << "first who is silent";
  anew[3].idleness = std::chrono::seconds(1);
  EXPECT_EQ(who_gives_way(anew, {"c", kPatience}, kPatience), (Leaver{3, Leave::kCompares}));
  const std::vector<Placed> four_hosts{slow_one("a", 1), slow_one("b", 1), slow_one("c", 1),
                                       slow_one("d", 1)};
  EXPECT_EQ(who_gives_way(four_hosts, {"e", 2 * kPatience}, kPatience), std::nullopt)
      << "none has more than its share";
}

TEST(Places, AreNotTakenFromEachOtherForEver) {
  const std::vector<Placed> three{slow_one("a", 300), slow_one("a", 200), slow_one("b", 100)};
  EXPECT_EQ(who_gives_way(three, {"b", 2 * kPatience}, kPatience), std::nullopt)
      << "then it would be the turn of the other host";
  EXPECT_EQ(who_gives_way(three, {"c", 2 * kPatience}, kPatience), (Leaver{1, Leave::kSlow}));
}

TEST(Places, AreForThoseHostsFirstThatHaveFewest) {
  EXPECT_EQ(next_of({"a", "a", "b", "c"}, {"a", "b"}), 3U);
  EXPECT_EQ(next_of({"a", "a", "b"}, {"a", "b"}), 0U);
}

TEST(Places, WhenTooManyWaitTheNewestOfTheHostWithMostHasToGo) {
  EXPECT_EQ(one_too_many({"a", "b", "b", "c", "a"}, {"a", "c"}), 4U);
  EXPECT_EQ(one_too_many({"a", "b", "b", "c"}, {}), 2U);
}

TEST(Presence, WhoWaitsForOurWorkIsSilentAndNotIdle) {
  Presence sender;
  sender.heard = (Presence::now() - std::chrono::minutes(5)).count();
  sender.worked = sender.heard.load();
  EXPECT_GE(sender.idleness(), std::chrono::minutes(5));
  sender.work();
  EXPECT_LT(sender.idleness(), std::chrono::minutes(1));
  EXPECT_GE(sender.silence(), std::chrono::minutes(5));
}

}  // namespace
}  // namespace stp::files
