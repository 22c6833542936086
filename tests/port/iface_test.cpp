// SPDX-License-Identifier: BSD-3-Clause
// Linux interfaces: a veth pair in a network namespace of the test's own.
#include <gtest/gtest.h>

#include <algorithm>

#include "link_pair.h"
#include "network_namespace.h"

namespace stp::port {
namespace {

class Iface : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!space.missing().empty()) GTEST_SKIP() << space.missing();
  }
  void open(unsigned mtu, const std::string& options_a = "", const std::string& options_b = "") {
    ASSERT_TRUE(NetworkNamespace::make_veth(mtu));
    a.open("iface:stp0" + options_a);
    b.open("iface:stp1" + options_b);
  }
  static std::string error_of(const std::string& link) {
    std::string error;
    EXPECT_FALSE(open_link(link, error));
    return error;
  }
  [[nodiscard]] bool has_arrived(const Frame& frame) const {
    const auto& frames = b.engine.received;
    return std::find(frames.begin(), frames.end(), frame) != frames.end();
  }

  NetworkNamespace space;
  LinkEnd a, b;
};

TEST_F(Iface, TakesAddressesAndMtuFromTheInterface) {
  ASSERT_TRUE(NetworkNamespace::make_veth(9000));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 address 02:00:00:00:0a:01"));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0"));
  a.open("iface:stp0");
  const PortInfo& info = a.port->info();
  EXPECT_EQ(to_string(info.mac), "02:00:00:00:0a:01");
  EXPECT_EQ(info.address, parse_ipv4("10.9.0.1"));
  EXPECT_EQ(info.mtu, 9000U);
  EXPECT_EQ(info.max_stu, 13U);
  EXPECT_EQ(info.driver, "net_af_packet");
  EXPECT_TRUE(info.attaches);
}

TEST_F(Iface, CarriesSmallFrames) {
  open(1500);
  expect_frames_arrive_in_order(a, b, 60, 2000);
  expect_frames_arrive_in_order(b, a, 1514, 2000);
}

TEST_F(Iface, CarriesJumboFrames) {
  open(9000);
  expect_frames_arrive_in_order(a, b, 9014, 500);
}

TEST_F(Iface, AttachedMemoryArrivesAndEachTokenComesBackOnce) {
  open(9000);
  expect_attached_memory_arrives(a, b, 8192, 300);
  expect_attached_memory_arrives(b, a, 256, 300);
}

TEST_F(Iface, WithCopyingAllArrives) {
  open(9000, ",copy=1", ",copy=1");
  EXPECT_FALSE(a.port->info().attaches);
  expect_attached_memory_arrives(a, b, 8192, 100);
}

TEST_F(Iface, TaggedFramesArriveTagged) {
  open(1500);
  Frame frame = make_frame(b.mac(), a.mac(), 200);
  const Frame tag{std::byte{0x81}, std::byte{0x00}, std::byte{0x00}, std::byte{0x07}};
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  a.engine.send(frame);
  EXPECT_TRUE(turn_until(a, b, [&] { return has_arrived(frame); }));
}

TEST_F(Iface, FindsItsPeerByArp) {
  open(1500, ",address=10.9.0.1/24", ",address=10.9.0.2/24");
  expect_both_ends_resolve(a, *parse_ipv4("10.9.0.1"), b, *parse_ipv4("10.9.0.2"));
}

TEST_F(Iface, TheKernelAnswersForItsOwnAddress) {
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.2/24 dev stp1"));
  a.open("iface:stp0,address=10.9.0.1/24");
  b.open("iface:stp1");
  const Ipv4 peer = *parse_ipv4("10.9.0.2");
  EXPECT_TRUE(turn_until(a, b, [&] { return a.port->resolve(peer, now()).has_value(); }));
  EXPECT_EQ(a.port->resolve(peer, now()), b.mac());
  EXPECT_EQ(counter(*b.port, "arp_answers_sent"), 0U);
}

TEST_F(Iface, AMacOfOurChoiceLeavesTheInterfaceItsOwn) {
  open(1500, ",mac=02:00:00:00:00:77");
  EXPECT_EQ(to_string(a.mac()), "02:00:00:00:00:77");
  expect_frames_arrive_in_order(b, a, 100, 50);
  std::string error;
  const auto other = open_link("iface:stp0", error);
  ASSERT_TRUE(other) << error;
  EXPECT_NE(to_string(other->info().mac), "02:00:00:00:00:77");
}

TEST_F(Iface, LinkStateFollowsTheInterface) {
  open(1500);
  // The kernel lets a change of carrier settle before it tells.
  EXPECT_TRUE(turn_until(a, b, [&] { return a.port->link_up(); }));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp1 down"));
  EXPECT_TRUE(turn_until(a, b, [&] { return !a.port->link_up(); }));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp1 up"));
  EXPECT_TRUE(turn_until(a, b, [&] { return a.port->link_up(); }));
  expect_frames_arrive_in_order(a, b, 60, 10);
}

TEST_F(Iface, ALinkThatIsDownHoldsUpNobody) {
  open(1500);
  for (const char* end : {"stp0", "stp1"}) {
    SCOPED_TRACE(end);
    ASSERT_TRUE(NetworkNamespace::ip(std::string("link set ") + end + " down"));
    // More than the kernel's ring holds.
    for (unsigned i = 0; i < 10'000; ++i) a.engine.send(make_frame(b.mac(), a.mac(), 60));
    const Time start = now();
    for (Time t = start; a.engine.waiting() > 0; t += kMillisecond) {
      ASSERT_LT(now() - start, 20 * kSecond);
      a.port->turn(a.engine, t);
    }
    ASSERT_TRUE(NetworkNamespace::ip(std::string("link set ") + end + " up"));
  }
  const Frame last = make_frame(b.mac(), a.mac(), 61);
  // The first frame may still find the ring full; it makes the kernel look at it again.
  EXPECT_TRUE(turn_until(a, b, [&] {
    if (a.engine.waiting() == 0) a.engine.send(last);
    return has_arrived(last);
  }));
}

TEST_F(Iface, AnInterfaceThatIsRemovedTakesNothingDownWithIt) {
  open(1500);
  ASSERT_TRUE(NetworkNamespace::ip("link delete stp0"));
  EXPECT_FALSE(a.port->link_up());
  const Frame memory = make_bytes(1024, 1);
  for (RegionId i = 1; i <= 100; ++i) {
    a.engine.send_attached(make_frame(b.mac(), a.mac(), 54), memory, i);
  }
  const Time start = now();
  for (Time t = start; t < start + kSecond; t += kMillisecond) a.port->turn(a.engine, t);
  EXPECT_EQ(a.engine.returned.size(), 100U);
}

TEST_F(Iface, ErrorsNameTheCauseAndTheRemedy) {
  EXPECT_NE(error_of("iface:nowhere0").find("no such interface"), std::string::npos);
  EXPECT_NE(error_of("iface:lo").find("'loop'"), std::string::npos);
  ASSERT_TRUE(NetworkNamespace::make_veth(9000));
  EXPECT_NE(error_of("iface:stp0,mtu=9001").find("ip link set stp0 mtu 9001"), std::string::npos);
  EXPECT_NE(error_of("iface:stp0,driver=af_xdp").find("3506"), std::string::npos);
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 down"));
  EXPECT_NE(error_of("iface:stp0").find("ip link set stp0 up"), std::string::npos);
  ASSERT_TRUE(NetworkNamespace::ip("link set stp1 mtu 300"));
  EXPECT_NE(error_of("iface:stp1").find("too small"), std::string::npos);
}

}  // namespace
}  // namespace stp::port
