// SPDX-License-Identifier: BSD-3-Clause
// The addresses of this host, in a network namespace of their own.
#include "dpdk_port/link/interfaces.h"

#include <gtest/gtest.h>
#include <net/if.h>

#include "tests/dpdk_port/network_namespace.h"

namespace stp::port::interfaces_test {
namespace {

TEST(HostAddresses, AreThoseThatTheKernelHasAtThatMoment) {
  const NetworkNamespace here;
  if (!here.missing().empty()) GTEST_SKIP() << here.missing();
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  HostAddresses addresses;
  auto ours = parse_internet_address("10.9.0.1").value();
  ours.port = 8181;
  EXPECT_FALSE(addresses.has(ours, 0, 0));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0"));
  EXPECT_TRUE(addresses.has(ours, 0, 0));
  EXPECT_TRUE(addresses.has(ours, if_nametoindex("stp0"), 0));
  EXPECT_FALSE(addresses.has(ours, if_nametoindex("stp1"), 0));
  EXPECT_FALSE(addresses.has(parse_internet_address("10.9.0.2").value(), 0, 0));
  ASSERT_TRUE(NetworkNamespace::ip("address del 10.9.0.1/24 dev stp0"));
  EXPECT_FALSE(addresses.has(ours, 0, 0));
}

TEST(HostAddresses, OfOneNetworkOnlyAreTheirInterfacesOwn) {
  const NetworkNamespace here;
  if (!here.missing().empty()) GTEST_SKIP() << here.missing();
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  if (!NetworkNamespace::ip("address add fe80::9/64 dev stp0 nodad") ||
      !NetworkNamespace::ip("address add fe80::9/64 dev stp1 nodad"))
    GTEST_SKIP() << "no IPv6 here";
  HostAddresses addresses;
  const auto first = parse_internet_address("fe80::9%stp0").value();
  EXPECT_TRUE(addresses.has(first, 0, 0));
  EXPECT_TRUE(addresses.has(first, if_nametoindex("stp0"), 0));
  EXPECT_FALSE(addresses.has(first, if_nametoindex("stp1"), 0));
  EXPECT_TRUE(addresses.has(parse_internet_address("fe80::9%stp1").value(), 0, 0));
}

}  // namespace
}  // namespace stp::port::interfaces_test
