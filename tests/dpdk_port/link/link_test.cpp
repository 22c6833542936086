// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include "dpdk_port/link/link.h"

namespace stp::port {
namespace {

LinkConfig good(const std::string& text) {
  LinkConfig link;
  std::string error;
  EXPECT_TRUE(parse_link(text, link, error)) << error;
  EXPECT_EQ(link.text, text);
  return link;
}

TEST(Link, EveryKindIsKnownByItsFirstWord) {
  EXPECT_EQ(good("stpd:/run/stpd/stpd.sock").kind, LinkKind::kStpd);
  EXPECT_EQ(good("iface:eth0").kind, LinkKind::kIface);
  EXPECT_EQ(good("pci:0000:3b:00.0").kind, LinkKind::kPci);
  EXPECT_EQ(good("memif:/run/a.sock").kind, LinkKind::kMemif);
  EXPECT_EQ(good("vdev:net_ring0").kind, LinkKind::kVdev);
  EXPECT_EQ(good("udp:10.0.0.5").kind, LinkKind::kUdp);
  for (const char* all : {"udp:,port=9000", "udp,port=9000"}) {
    EXPECT_EQ(good(all).kind, LinkKind::kUdp);
    EXPECT_EQ(good(all).target, "") << "all addresses of the host";
  }
  for (const char* any : {"ip:10.0.0.5", "ip:[2001:db8::5]", "ip:eth0", "ip:", "ip", "ip:,mtu=380"})
    EXPECT_EQ(good(any).kind, LinkKind::kIp) << any;
  EXPECT_EQ(good("loop").kind, LinkKind::kLoop);
}

TEST(Link, TargetIsWhatStandsBehindTheColon) {
  EXPECT_EQ(good("stpd:/run/stpd/stpd.sock").target, "/run/stpd/stpd.sock");
  EXPECT_EQ(good("stpd:").target, "");
  EXPECT_EQ(good("iface:eth0,mtu=1500").target, "eth0");
  EXPECT_EQ(good("pci:0000:3b:00.0,mtu=9000").target, "0000:3b:00.0");
  EXPECT_EQ(good("memif:a.sock,role=server").target, "a.sock");
  EXPECT_EQ(good("udp:[2001:db8::5],mtu=1400").target, "[2001:db8::5]");
}

TEST(Link, CommonOptionsAreReadForEveryKind) {
  for (const char* kind :
       {"iface:eth0", "pci:0000:3b:00.0", "memif:/a", "vdev:net_ring0", "loop"}) {
    const LinkConfig link = good(
        std::string(kind) + ",mac=02:00:00:00:00:07,address=10.9.0.1/24,mtu=9000,vlan=7,copy=1");
    EXPECT_EQ(link.mac, parse_mac("02:00:00:00:00:07"));
    EXPECT_EQ(link.address, parse_ipv4("10.9.0.1"));
    EXPECT_EQ(link.mtu, 9000U);
    EXPECT_EQ(link.vlan, 7);
    EXPECT_TRUE(link.copy);
    EXPECT_FALSE(link.driver || link.role);
  }
}

TEST(Link, StationsCanBeNamedSoThatNobodyIsAskedForThem) {
  const LinkConfig link =
      good("iface:eth0,arp=10.9.0.2@02:00:00:00:00:02+10.9.0.3@02-00-00-00-00-03");
  EXPECT_EQ(link.arp.size(), 2U);
  EXPECT_EQ(link.arp.at(*parse_ipv4("10.9.0.3")), parse_mac("02:00:00:00:00:03"));
  LinkConfig none;
  std::string error;
  for (const char* wrong :
       {"", "10.9.0.2", "@02:00:00:00:00:02", "10.9.0.2@", "10.9.0.2@ff:ff:ff:ff:ff:ff",
        "0.0.0.0@02:00:00:00:00:02", "10.9.0.2@02:00:00:00:00:02+10.9.0.2@02:00:00:00:00:03"}) {
    EXPECT_FALSE(parse_link(std::string("loop,arp=") + wrong, none, error)) << wrong;
    EXPECT_NE(error.find("10.9.0.2@02:00:00:00:00:02"), std::string::npos) << error;
  }
}

TEST(Link, WithoutOptionsNothingIsAssumed) {
  const LinkConfig link = good("iface:eth0");
  EXPECT_FALSE(link.mac || link.address || link.mtu || link.vlan || link.copy);
}

TEST(Link, OptionsOfAKindHaveTheirTypes) {
  const LinkConfig memif = good("memif:/a,role=server,id=3,rsize=12,bsize=2048");
  EXPECT_EQ(memif.role, MemifRole::kServer);
  EXPECT_EQ(memif.id, 3U);
  EXPECT_EQ(memif.rsize, 12U);
  EXPECT_EQ(memif.bsize, 2048U);
  EXPECT_FALSE(memif.driver || memif.qdisc || memif.port || memif.congestion);
  EXPECT_EQ(good("iface:eth0,driver=af_xdp").driver, IfaceDriver::kAfXdp);
  EXPECT_EQ(good("iface:eth0,qdisc=0").qdisc, false);
  EXPECT_EQ(good("udp:,port=0").port, 0U);
  EXPECT_EQ(good("ip:,congestion=on").congestion, Congestion::kOn);
  EXPECT_EQ(good("ip:,congestion=auto").congestion, Congestion::kAuto);
}

TEST(Link, QueuesAreOneUnlessTheLinkSaysHowMany) {
  EXPECT_EQ(good("iface:eth0").queues, 1U);
  EXPECT_EQ(good("iface:eth0,queues=4").queues, 4U);
  EXPECT_EQ(good("memif:/a,queues=16").queues, kMaxQueues);
  EXPECT_EQ(good("loop,queues=auto").queues, kAutoQueues);
  LinkConfig link;
  std::string error;
  for (const char* wrong : {"loop,queues=0", "loop,queues=17", "loop,queues=", "loop,queues=two"}) {
    EXPECT_FALSE(parse_link(wrong, link, error)) << wrong;
    EXPECT_NE(error.find("1 to 16, or auto"), std::string::npos) << error;
  }
}

TEST(Link, TheQueuesOfAVdevAreItsDriversBusiness) {
  const LinkConfig link = good("vdev:net_virtio_user0,path=/a,queues=2");
  EXPECT_EQ(link.queues, 1U);
  EXPECT_EQ(link.target, "net_virtio_user0,path=/a,queues=2");
  const LinkConfig divided = good("vdev:net_virtio_user0,path=/a,queues=2,shards=4");
  EXPECT_EQ(divided.queues, 4U);
  EXPECT_EQ(divided.target, "net_virtio_user0,path=/a,queues=2");
  LinkConfig other;
  std::string error;
  EXPECT_FALSE(parse_link("loop,shards=2", other, error)) << "there it is called queues";
}

TEST(Link, VdevHandsOnWhatIsNotOurs) {
  const LinkConfig link =
      good("vdev:net_pcap0,iface=veth0,mtu=1500,phy_mac=1,rx_iface=a,rx_iface=b");
  EXPECT_EQ(link.target, "net_pcap0,iface=veth0,phy_mac=1,rx_iface=a,rx_iface=b");
  EXPECT_EQ(link.mtu, 1500U);
}

struct BadLink {
  std::string text;
  const char* says;  // part of the error: the cause or the remedy
};
class BadLinks : public ::testing::TestWithParam<BadLink> {};

TEST_P(BadLinks, AreRefusedWithCauseAndRemedy) {
  LinkConfig link;
  link.target = "untouched";
  std::string error;
  EXPECT_FALSE(parse_link(GetParam().text, link, error));
  EXPECT_NE(error.find(GetParam().says), std::string::npos) << error;
  EXPECT_NE(error.find("'" + GetParam().text + "'"), std::string::npos) << error;
  EXPECT_EQ(link.target, "untouched");
}

INSTANTIATE_TEST_SUITE_P(
    Port, BadLinks,
    ::testing::Values(
        BadLink{"", "starts with"}, BadLink{"eth0", "starts with"},
        BadLink{"iface", "interface name"}, BadLink{"iface:", "interface name"},
        BadLink{"iface:,mtu=1500", "interface name"},
        BadLink{"iface:" + std::string(128, 'x'), "127 characters"},
        BadLink{"pci:3b:00.0", "0000:3b:00.0"}, BadLink{"pci:0000:3b:00.9", "0000:3b:00.0"},
        BadLink{"pci:0000-3b:00.0", "0000:3b:00.0"}, BadLink{"memif:", "socket path"},
        BadLink{"vdev:", "device string"}, BadLink{"loop:", "loop has nothing"},
        BadLink{"loop:0", "loop has nothing"}, BadLink{"Loop", "starts with"},
        BadLink{"stpd:/a,mtu=9000", "no options"}, BadLink{"iface:eth0,", "option is missing"},
        BadLink{"iface:eth0,,mtu=1500", "is missing"},
        BadLink{"iface:eth0,=3", "option is missing"},
        BadLink{"iface:eth0,role=server",
                "there are mac, address, arp, mtu, vlan, copy, queues, driver, qdisc"},
        BadLink{"memif:/a,driver=af_xdp", "no option 'driver'"},
        BadLink{"loop,speed=3", "no option 'speed'"}, BadLink{"loop,mtu", "'mtu' is not legal"},
        BadLink{"loop,mtu=", "360 to 65640"}, BadLink{"loop,mtu=359", "360 to 65640"},
        BadLink{"loop,mtu=65641", "360 to 65640"}, BadLink{"loop,mtu=9000k", "360 to 65640"},
        BadLink{"loop,mtu=-1", "360 to 65640"}, BadLink{"loop,mtu=99999999999999", "360 to 65640"},
        BadLink{"loop,vlan=0", "1 to 4094"}, BadLink{"loop,vlan=4095", "1 to 4094"},
        BadLink{"loop,copy=yes", "0 or 1"}, BadLink{"loop,mac=1:2:3:4:5:6", "02:00:00:00:00:01"},
        BadLink{"loop,mac=01:00:5e:00:00:01", "station's address"},
        BadLink{"loop,mac=00:00:00:00:00:00", "station's address"},
        BadLink{"loop,address=10.9.0.1", "10.9.0.1/24"},
        BadLink{"loop,address=10.9.0.1/33", "10.9.0.1/24"},
        BadLink{"loop,address=10.9.0.1/0", "10.9.0.1/24"},
        BadLink{"loop,address=0.0.0.0/8", "10.9.0.1/24"},
        BadLink{"loop,mtu=1500,mtu=9000", "stands twice"},
        BadLink{"iface:", "after iface: stands an interface name, as in iface:eth0"},
        BadLink{"vdev:", "after vdev: stands a DPDK device string, as in vdev:net_ring0"},
        BadLink{"iface:eth0:8181", "write iface:eth0, and options after commas; address= chooses"},
        BadLink{"iface:eth0:1,mtu=1500", "'eth0:1' is no interface name"},
        BadLink{"iface::8181", "write iface:eth0,"},
        BadLink{"vdev:net_ring0:1,mtu=1500", "write vdev:net_ring0, and options after commas"},
        BadLink{"udp:eth0:8181", "write udp:eth0,port=8181"},
        BadLink{"udp:10.0.0.5:8181", "write udp:10.0.0.5,port=8181"},
        BadLink{"udp:[2001:db8::5]:8181,mtu=1400", "write udp:[2001:db8::5],port=8181"},
        BadLink{"udp:10.0.0.5/9000", "write udp:10.0.0.5, or udp:10.0.0.5,port=9000"},
        BadLink{"udp:[2001:db8::5]/9000",
                "write udp:[2001:db8::5], or udp:[2001:db8::5],port=9000"},
        BadLink{"ip:10.0.0.5/9000", "write ip:10.0.0.5"},
        BadLink{"udp::8181", "write udp:,port=8181"}, BadLink{"udp:eth0:x", "is no IPv6 address"},
        BadLink{"pci:0000:3b:00.0:1", "written like 0000:3b:00.0"},
        BadLink{"ifcae:eth0,mtu=1500", "did you mean iface:eth0?"},
        BadLink{"Loop", "did you mean loop?"}, BadLink{"eth0", "did you mean iface:eth0?"},
        BadLink{"10.0.0.5", "did you mean udp:10.0.0.5?"},
        BadLink{"[2001:db8::5]", "did you mean udp:[2001:db8::5]?"},
        BadLink{"0000:3b:00.0", "did you mean pci:0000:3b:00.0?"},
        BadLink{"/run/stpd/stpd.sock", "did you mean stpd:/run/stpd/stpd.sock?"},
        BadLink{"net_ring0", "did you mean vdev:net_ring0?"},
        BadLink{"iface:eth0,mut=9000",
                "no option 'mut' here; there are mac, address, arp, mtu, "
                "vlan, copy, queues, driver, qdisc; did you mean mtu=?"},
        BadLink{"memif:/a,roll=server", "did you mean role=?"},
        BadLink{"memif:/a,role=master", "server or client"},
        BadLink{"memif:/a,rsize=15", "1 to 14"}, BadLink{"memif:/a,bsize=64", "256 to 65535"},
        BadLink{"memif:/a,id=-1", "a number"},
        BadLink{"memif:/a,zero-copy=yes", "no option 'zero-copy'"},
        BadLink{"iface:eth0,driver=pcap", "af_packet or af_xdp"},
        BadLink{"udp:[fe80::1]", "needs its interface, as in [fe80::1%eth0]"},
        BadLink{"udp:0.0.0.1", "address of many hosts, or none"},
        BadLink{"udp:[::ffff:10.0.0.5]", "is an IPv4 address: write udp:10.0.0.5"},
        BadLink{"udp:[2001:db8::5],mtu=400", "over IPv6 from 408"},
        BadLink{"udp:,mtu=400", "over IPv6 from 408"},
        BadLink{"udp:10.0.0.5,congestion=1", "auto, on or off"}));

TEST(Link, ColonsStayWhereTheyBelong) {
  EXPECT_EQ(good("vdev:net_af_xdp0,mac=02:00:00:00:00:01,iface=a:b").target,
            "net_af_xdp0,iface=a:b");
  EXPECT_EQ(good("memif:/run/a:1.sock").target, "/run/a:1.sock");
  EXPECT_EQ(good("stpd:/run/a:1.sock").target, "/run/a:1.sock");
  EXPECT_EQ(good("udp:2001:db8::5").target, "2001:db8::5");
}

TEST(Link, NothingIsSuggestedForWhatNobodyCanMean) {
  LinkConfig link;
  std::string error;
  for (const char* text : {"", "tcp:10.0.0.5", "what is this", "loop,speed=3"}) {
    EXPECT_FALSE(parse_link(text, link, error));
    EXPECT_EQ(error.find("did you mean"), std::string::npos) << error;
  }
}

TEST(Link, SocketPathsFitASocketAddress) {
  LinkConfig link;
  std::string error;
  EXPECT_TRUE(parse_link("memif:" + std::string(107, 'a'), link, error));
  EXPECT_FALSE(parse_link("memif:" + std::string(108, 'a'), link, error));
  EXPECT_FALSE(parse_link("stpd:" + std::string(108, 'a'), link, error));
}

}  // namespace
}  // namespace stp::port
