// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/device_spec.h"

#include <gtest/gtest.h>

#include "dpdk_port/link_port.h"

namespace stp::port::device_spec_test {
namespace {

DeviceSpec spec_of(const std::string& text) {
  LinkConfig link;
  DeviceSpec spec;
  std::string error;
  EXPECT_TRUE(parse_link(text, link, error)) << error;
  EXPECT_TRUE(make_device_spec(link, 3, spec, error)) << error;
  return spec;
}

TEST(DeviceSpec, MemifBuffersHoldAWholeFrame) {
  const DeviceSpec spec = spec_of("memif:/run/a.sock,role=server");
  EXPECT_EQ(spec.bus, "vdev");
  EXPECT_EQ(spec.name, "memif3");
  EXPECT_EQ(spec.mtu, 9000U);
  EXPECT_GE(spec.data_room, 9026U);
  ASSERT_TRUE(spec.memif);
  EXPECT_EQ(spec.memif->buffer, 9088U);
  EXPECT_EQ(spec.memif->socket, "/run/a.sock");
  EXPECT_TRUE(spec.memif->makes_socket);
}

TEST(DeviceSpec, MemifOptionsAreTaken) {
  const DeviceSpec spec = spec_of("memif:/a,id=4,rsize=5,bsize=2048,mtu=1500");
  ASSERT_TRUE(spec.memif);
  EXPECT_EQ(spec.memif->id, 4U);
  EXPECT_EQ(spec.memif->log2_ring, 5U);
  EXPECT_EQ(spec.memif->buffer, 2048U);
  EXPECT_FALSE(spec.memif->makes_socket);
}

TEST(DeviceSpec, MemifRingsHoldAFrameAndNotTooMuch) {
  for (const char* const link : {"memif:/a,rsize=1,bsize=256", "memif:/a,rsize=14,bsize=65535"}) {
    LinkConfig config;
    DeviceSpec spec;
    std::string error;
    ASSERT_TRUE(parse_link(link, config, error)) << error;
    EXPECT_FALSE(make_device_spec(config, 0, spec, error)) << link;
    EXPECT_NE(error.find("change rsize= or bsize="), std::string::npos) << error;
  }
}

TEST(DeviceSpec, MemifRingsOfLongFramesAreShorter) {
  const auto log2_ring = [](const std::string& link) { return spec_of(link).memif->log2_ring; };
  EXPECT_EQ(log2_ring("memif:/a,mtu=1500"), 10U);
  EXPECT_EQ(log2_ring("memif:/a"), 9U) << "9088 bytes each";
  EXPECT_EQ(log2_ring("memif:/a,mtu=33000"), 7U);
  EXPECT_EQ(log2_ring("memif:/a,mtu=65000"), 7U);
  EXPECT_EQ(log2_ring("memif:/a,bsize=2048"), 10U) << "frames in several buffers";
}

TEST(DeviceSpec, MemifEndsHaveTheirOwnAddressesAndKeepThem) {
  const auto mac_of = [](const std::string& text) { return spec_of(text).mac.value(); };
  EXPECT_EQ(mac_of("memif:/a,role=server"), mac_of("memif:/a,role=server"));
  EXPECT_NE(mac_of("memif:/a,role=server"), mac_of("memif:/a,role=client"));
  EXPECT_NE(mac_of("memif:/a"), mac_of("memif:/a,id=1"));
  EXPECT_FALSE(mac_of("memif:/a").is_group());
  EXPECT_EQ(mac_of("memif:/a,mac=02:00:00:00:00:55").to_u64(), 0x020000000055U);
}

TEST(DeviceSpec, VdevStringIsSplitIntoNameAndArguments) {
  const DeviceSpec spec = spec_of("vdev:net_pcap0,iface=veth0,phy_mac=1");
  EXPECT_EQ(spec.name, "net_pcap0");
  EXPECT_EQ(spec.arguments, "iface=veth0,phy_mac=1");
  EXPECT_EQ(spec.mtu, 1500U);
  EXPECT_FALSE(spec.sets_mtu);
  EXPECT_TRUE(spec_of("vdev:net_tap0,mtu=4000").sets_mtu);
}

TEST(DeviceSpec, PciIsProbedByItsAddress) {
  const DeviceSpec spec = spec_of("pci:0000:3b:00.0,mtu=9000");
  EXPECT_EQ(spec.bus, "pci");
  EXPECT_EQ(spec.name, "0000:3b:00.0");
  EXPECT_TRUE(spec.sets_mtu);
}

TEST(DeviceSpec, AnAddressGivenExplicitlyIsAnsweredFor) {
  EXPECT_TRUE(spec_of("memif:/a,address=10.9.0.1/24").answers_arp);
  EXPECT_FALSE(spec_of("memif:/a").answers_arp);
}

TEST(DeviceSpec, AnMtuBeyondAnMbufIsRefused) {
  LinkConfig link;
  DeviceSpec spec;
  std::string error;
  ASSERT_TRUE(parse_link("memif:/a,mtu=65300", link, error));
  EXPECT_FALSE(make_device_spec(link, 0, spec, error));
  EXPECT_NE(error.find("65280"), std::string::npos) << error;
}

// protocol: 2.8
TEST(MaxStu, IsTheLargestThatFitsBesideHeaderAndAppend) {
  EXPECT_EQ(max_stu_of(360), 8U);
  EXPECT_EQ(max_stu_of(615), 8U);
  EXPECT_EQ(max_stu_of(616), 9U);
  EXPECT_EQ(max_stu_of(1500), 10U);
  EXPECT_EQ(max_stu_of(9000), 13U);
  EXPECT_EQ(max_stu_of(65'280), 15U);
  EXPECT_EQ(max_stu_of(65'640), 16U);
}

}  // namespace
}  // namespace stp::port::device_spec_test
