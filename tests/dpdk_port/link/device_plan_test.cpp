// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/device_plan.h"

#include <gtest/gtest.h>

#include "dpdk_port/link_port.h"

namespace stp::port {
namespace {

DeviceSpec spec_of(const std::string& text) {
  LinkConfig link;
  DeviceSpec spec;
  std::string error;
  EXPECT_TRUE(parse_link(text, link, error)) << error;
  EXPECT_TRUE(make_device_spec(link, 0, spec, error)) << error;
  return spec;
}

std::size_t room(const std::string& link, const std::string& driver, std::size_t least = 0) {
  return plan_device(spec_of(link), {.driver = driver, .least_room = least}).room;
}

TEST(DevicePlan, ABufferHoldsAFrameAndTheHeadersOfDrivers) {
  EXPECT_EQ(room("pci:0000:00:03.0", "net_virtio"), 2048U);
  EXPECT_EQ(room("pci:0000:00:03.0,mtu=9000", "net_virtio"), 9216U);
  EXPECT_EQ(room("pci:0000:00:03.0,mtu=2000", "net_virtio"), 3072U) << "2026 bytes, and 32";
}

TEST(DevicePlan, ADriverGetsTheBufferItInsistsOn) {
  EXPECT_EQ(room("pci:0000:00:03.0", "net_vmxnet3", 1646), 2048U);
  EXPECT_EQ(room("pci:0000:00:03.0", "net_other", 4000), 4096U);
}

TEST(DevicePlan, ADeviceOfPowersOfTwoTakesAFullFrameInOneBuffer) {
  EXPECT_EQ(room("pci:0000:00:03.0", "net_e1000_em"), 2048U);
  EXPECT_EQ(room("pci:0000:00:03.0,mtu=9000", "net_e1000_em"), 16'384U);
}

TEST(DevicePlan, ALengthFits16Bits) {
  const std::size_t most = room("pci:0000:00:03.0,mtu=65280", "net_virtio");
  EXPECT_GE(most, 65'306U);
  EXPECT_LE(most + 128, 65'535U);
  EXPECT_LE(room("pci:0000:00:03.0,mtu=40000", "net_e1000_em") + 128, 65'535U);
}

TEST(DevicePlan, AnMbufOfAfXdpIsAChunkOfAtMostAPage) {
  constexpr std::size_t kHeads = 64 + 128 + 128, kPage = 4096;
  EXPECT_GE(room("vdev:net_af_xdp0,mtu=1500", "net_af_xdp") + kHeads, 2048U);
  EXPECT_GE(room("vdev:net_af_xdp0,mtu=360", "net_af_xdp") + kHeads, 2048U);
  EXPECT_LE(room("vdev:net_af_xdp0,mtu=3506", "net_af_xdp") + kHeads, kPage);
}

TEST(DevicePlan, BuffersOfMemifStayAsTheyAre) {
  EXPECT_EQ(room("memif:/a", ""), spec_of("memif:/a").data_room);
}

TEST(DevicePlan, AVlanIsToldToADeviceThatFilters) {
  const auto told = [](const std::string& link, bool filters) {
    return plan_device(spec_of(link), {.driver = "net_virtio", .filters_vlans = filters}).tell_vlan;
  };
  EXPECT_TRUE(told("pci:0000:00:03.0,vlan=7", true));
  EXPECT_FALSE(told("pci:0000:00:03.0,vlan=7", false));
  EXPECT_FALSE(told("pci:0000:00:03.0", true)) << "its filter stays off";
}

TEST(DevicePlan, VfioPinsWhatFourLinksNeedAndNotMore) {
  EXPECT_LE(pinned_megabytes(spec_of("pci:0000:00:03.0")), 64U);
  EXPECT_GE(pinned_megabytes(spec_of("pci:0000:00:03.0")), 56U);
  EXPECT_LE(pinned_megabytes(spec_of("pci:0000:00:03.0,mtu=9000")), 160U);
}

TEST(DevicePlan, OneShardHasOneQueueUnlessItsPeerPicksOne) {
  const DevicePlan nic =
      plan_device({}, {.driver = "net_ice", .most_receive_queues = 8, .most_send_queues = 8});
  EXPECT_EQ(nic.receive_queues, 1U);
  EXPECT_EQ(nic.send_queues, 1U);
  EXPECT_EQ(nic.steering, Steering::kNothing);
  const DevicePlan shared =
      plan_device({}, {.driver = "net_vhost", .most_receive_queues = 8, .most_send_queues = 8});
  EXPECT_EQ(shared.receive_queues, 8U);
}

TEST(DevicePlan, ShardsHaveAQueueEachWhereTheDeviceHasThem) {
  DeviceSpec spec;
  spec.shards = 4;
  const auto plan = [&](const char* driver, unsigned receive, unsigned send) {
    return plan_device(
        spec, {.driver = driver, .most_receive_queues = receive, .most_send_queues = send});
  };
  const DevicePlan nic = plan("net_ice", 64, 64);
  EXPECT_EQ(nic.receive_queues, 4U);
  EXPECT_EQ(nic.send_queues, 4U);
  EXPECT_EQ(nic.steering, Steering::kRules);
  const DevicePlan small = plan("net_e1000_em", 1, 2);
  EXPECT_EQ(small.receive_queues, 1U);
  EXPECT_EQ(small.send_queues, 2U);
  EXPECT_EQ(small.steering, Steering::kNothing);
  // All that such a device was made with: the peer may have shards, too.
  const DevicePlan shared = plan("net_vhost", 8, 8);
  EXPECT_EQ(shared.receive_queues, 8U);
  EXPECT_EQ(shared.steering, Steering::kPeer);
}

TEST(DevicePlan, PinnedMemoryGrowsWithTheShards) {
  DeviceSpec spec;
  spec.data_room = 9018;
  const unsigned one = pinned_megabytes(spec);
  spec.shards = 4;
  EXPECT_GT(pinned_megabytes(spec), 3 * one);
}

}  // namespace
}  // namespace stp::port

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
