// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/address.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/dpdk_port/network_namespace.h"

namespace stp::port {
namespace {

TEST(Ipv4Text, GoesBothWays) {
  for (const char* text : {"0.0.0.0", "10.9.0.1", "127.0.0.1", "255.255.255.255"}) {
    const auto address = parse_ipv4(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(to_string(*address), text);
  }
  EXPECT_EQ(parse_ipv4("10.9.0.1")->value, 0x0a090001U);
}

TEST(Ipv4Text, WhatIsNoAddressIsRefused) {
  for (const char* text : {"", "10.9.0", "10.9.0.1.2", "10.9.0.256", "10.9.0.", ".10.9.0.1",
                           "10.9.0.01", "10,9,0,1", "10.9.0.1 ", "a.b.c.d", "-1.0.0.0"}) {
    EXPECT_FALSE(parse_ipv4(text)) << text;
  }
}

TEST(MacText, GoesBothWays) {
  const auto mac = parse_mac("02:00:5e:10:ff:01");
  ASSERT_TRUE(mac);
  EXPECT_EQ(mac->to_u64(), 0x02005e10ff01U);
  EXPECT_EQ(to_string(*mac), "02:00:5e:10:ff:01");
  EXPECT_EQ(parse_mac("02-00-5E-10-FF-01"), mac);
}

TEST(MacText, WhatIsNoAddressIsRefused) {
  for (const char* text :
       {"", "02:00:5e:10:ff", "02:00:5e:10:ff:01:02", "2:0:5e:10:ff:1", "02:00-5e:10:ff:01",
        "02:00:5e:10:ff:0g", "02005e10ff01......", "02.00.5e.10.ff.01", "+2:00:5e:10:ff:01"}) {
    EXPECT_FALSE(parse_mac(text)) << text;
  }
}

TEST(UsualAddress, IsOneOfTheFamilyThatIsAskedFor) {
  const NetworkNamespace here;
  if (!here.missing().empty()) GTEST_SKIP() << here.missing();
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0"));
  if (!NetworkNamespace::ip("address add fd00:9::1/64 dev stp0 nodad"))
    GTEST_SKIP() << "no IPv6 here";
  const auto name = [](int family) { return host_of(usual_address(family).value()); };
  EXPECT_EQ(name(AF_INET), "10.9.0.1");
  EXPECT_EQ(name(AF_INET6), "fd00:9::1");
  EXPECT_EQ(name(AF_UNSPEC), "10.9.0.1");
  ASSERT_TRUE(NetworkNamespace::ip("address del 10.9.0.1/24 dev stp0"));
  EXPECT_EQ(name(AF_INET), "127.0.0.1");
  EXPECT_EQ(name(AF_UNSPEC), "fd00:9::1");
}

}  // namespace
}  // namespace stp::port
