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
