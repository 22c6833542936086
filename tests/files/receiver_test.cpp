// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/receiver.h"

#include <gtest/gtest.h>

namespace stp::files {
namespace {

TEST(Host, AllUdpPortsOfAnAddressAreOneHost) {
  EXPECT_EQ(host_in("10.0.0.5/8181"), host_in("10.0.0.5/40000"));
  EXPECT_NE(host_in("10.0.0.5/8181"), host_in("10.0.0.6/8181"));
}

TEST(Host, AllAddressesOfAnIpv6NetworkAreOneHost) {
  EXPECT_EQ(host_in("[2001:db8:0:1::5]/8181"), host_in("[2001:db8:0:1:ffff::7]/9"));
  EXPECT_NE(host_in("[2001:db8:0:1::5]/8181"), host_in("[2001:db8:0:2::5]/8181"));
  EXPECT_NE(host_in("[fe80::1%eth0]/8181"), host_in("[fe80::2%eth0]/8181")) << "all begin alike";
}

TEST(Host, AStationOnEthernetIsAHost) {
  EXPECT_EQ(host_in("[02:00:00:00:00:01]"), "[02:00:00:00:00:01]");
}

}  // namespace
}  // namespace stp::files
