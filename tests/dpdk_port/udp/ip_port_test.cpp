// SPDX-License-Identifier: BSD-3-Clause
// Links of raw sockets of IP protocol 118, which need CAP_NET_RAW, and who else has such sockets.
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

#include "dpdk_port/link/engine.h"
#include "dpdk_port/udp/peers.h"
#include "dpdk_port/udp/udp_socket.h"
#include "tests/dpdk_port/link_pair.h"

namespace stp::port::ip_port_test {
namespace {

// Addresses of this host that no other test has at the same time.
std::string own_address(unsigned last) {
  const auto pid = static_cast<unsigned>(::getpid());
  return "127." + std::to_string(64 + (pid >> 12) % 64) + "." + std::to_string((pid >> 4) % 256) +
         "." + std::to_string(1 + pid % 16 * 8 + last);
}

// Two links of this host that know each other.
struct IpPair {
  LinkEnd a, b;
  MacAddr b_at_a, a_at_b;

  IpPair() {
    a.open("ip:" + own_address(0));
    b.open("ip:" + own_address(1));
    if (!a.port || !b.port) return;
    b_at_a = a.port->find_station(parse_internet_address(own_address(1)).value(), now()).value();
    a_at_b = b.port->find_station(parse_internet_address(own_address(0)).value(), now()).value();
  }
};

class IpPort : public testing::Test {
 protected:
  void SetUp() override {
    LinkEnd end;
    std::string error;
    if (open_link("ip:" + own_address(7), error) != nullptr) return;
    ASSERT_NE(error.find("it needs CAP_NET_RAW; a udp: link needs nothing"), std::string::npos)
        << error;
    GTEST_SKIP() << error;
  }
};

// protocol: 13.15
TEST_F(IpPort, SaysWhatItIs) {
  LinkEnd end;
  end.open("ip:" + own_address(0) + ",mtu=9000");
  const PortInfo& info = end.port->info();
  EXPECT_EQ(info.mtu, 9000U - 20);
  EXPECT_EQ(info.max_stu, 13U);
  EXPECT_EQ(info.driver, "ip");
  EXPECT_EQ(info.device, own_address(0));
  EXPECT_TRUE(info.internet);
  EXPECT_EQ(info.udp_port, 0);
  auto with_port = parse_internet_address(own_address(1)).value();
  with_port.port = 8181;
  EXPECT_EQ(end.port->find_station(with_port, now()), std::nullopt) << "stations have no ports";
}

// protocol: 13.15
TEST_F(IpPort, CarriesFramesWhole) {
  IpPair pair;
  const auto frame = [](const MacAddr& to, const MacAddr& from, unsigned i) {
    Frame made = make_frame(to, from, 14 + 40 + 7 * i, i);
    made[14] = std::byte{0x1b << 3};  // DATA
    return made;
  };
  constexpr unsigned kFrames = 100;
  for (unsigned i = 0; i < kFrames; ++i) {
    pair.a.engine.send(frame(pair.b_at_a, pair.a.mac(), i));
    pair.b.engine.send(frame(pair.a_at_b, pair.b.mac(), i));
  }
  ASSERT_TRUE(turn_until(pair.a, pair.b, [&] {
    return pair.a.engine.received.size() == kFrames && pair.b.engine.received.size() == kFrames;
  }));
  for (unsigned i = 0; i < kFrames; ++i) {
    ASSERT_EQ(pair.a.engine.received[i], frame(pair.a.mac(), pair.b_at_a, i)) << i;
    ASSERT_EQ(pair.b.engine.received[i], frame(pair.b.mac(), pair.a_at_b, i)) << i;
  }
  EXPECT_EQ(pair.a.port->name_of_station(pair.b_at_a), own_address(1));
  EXPECT_EQ(raw_sockets_at(parse_internet_address(own_address(0)).value()), 4U)
      << "three for stations that may not be there, which hear nothing";
  pair.a.engine.send_to_silent(frame(pair.b_at_a, pair.a.mac(), 1));
  pair.a.turn();
  while (pair.b.turn() > 0) continue;
  ASSERT_EQ(pair.b.engine.received.size(), kFrames + 1);
  EXPECT_EQ(pair.b.engine.received.back(), frame(pair.b.mac(), pair.a_at_b, 1));
}

// ping has a header of eight bytes before its data, and this datagram none.
TEST_F(IpPort, HowToTryTheWayIsTold) {
  IpPair pair;
  const auto data = [](const MacAddr& to, const MacAddr& from, std::size_t length) {
    Frame made = make_frame(to, from, length, 1);
    made[14] = std::byte{0x1b << 3};  // DATA
    return made;
  };
  pair.a.engine.send(data(pair.b_at_a, pair.a.mac(), 14 + 8'232));
  ASSERT_TRUE(turn_until(pair.a, pair.b, [&] { return pair.b.engine.received.size() == 1; }));
  pair.b.engine.send(data(pair.a_at_b, pair.b.mac(), 14 + 40));
  ASSERT_TRUE(turn_until(pair.a, pair.b, [&] { return pair.a.engine.received.size() == 1; }));
  const std::string text = pair.a.port->trouble_of(pair.b_at_a);
  EXPECT_NE(text.find("'ping -M do -s 8224 " + own_address(1) + "'"), std::string::npos) << text;
}

TEST_F(IpPort, AnAddressInUseIsRefused) {
  LinkEnd first;
  first.open("ip:" + own_address(0));
  std::string error;
  EXPECT_EQ(open_link("ip:" + own_address(0), error), nullptr);
  EXPECT_NE(error.find("another program has a socket of IP protocol 118 at " + own_address(0)),
            std::string::npos)
      << error;
  EXPECT_NE(open_link("ip:" + own_address(1), error), nullptr) << error;
}

TEST(RawSockets, ThoseOfTheProtocolThatGetDatagramsForTheAddressAreCounted) {
  const auto count = [](const std::string& lines, const std::string& address) {
    std::istringstream list("  sl  local_address rem_address   st tx_queue rx_queue\n" + lines);
    return raw_sockets_at(parse_internet_address(address).value(), list);
  };
  const std::string rest = " 00000000:0000 07 00000000:00000000 00:00000000 00000000     0\n";
  // As a host writes it whose byte order is little-endian.
  const std::string at_one = "  118: 0100007F:0076" + rest, icmp = "    1: 0100007F:0001" + rest,
                    at_all = "  118: 00000000:0076" + rest;
  EXPECT_EQ(count(icmp, "127.0.0.1"), 0U);
  EXPECT_EQ(count(icmp + at_one + at_one, "127.0.0.1"), 2U);
  EXPECT_EQ(count(at_one, "127.0.0.2"), 0U);
  EXPECT_EQ(count(at_one + at_all, "0.0.0.0"), 2U);
  EXPECT_EQ(count(at_all, "127.0.0.2"), 1U);
  const std::string six = "  118: B80D0120000000000000000005000000:0076" + rest;
  EXPECT_EQ(count(six, "2001:db8::5"), 1U);
  EXPECT_EQ(count(six, "2001:db8::6"), 0U);
  EXPECT_EQ(count(six, "::"), 1U);
}

TEST(Peers, WithoutPortsAnIpv4AddressIsItsOwnName) {
  Peers peers(system_random(), 0);
  const auto address = parse_internet_address("10.0.0.5").value();
  const auto name = peers.heard(address, 0);
  ASSERT_TRUE(name);
  EXPECT_EQ(to_string(*name), "02:04:0a:00:00:05");
  EXPECT_EQ(peers.look_up(*name), address);
  auto with_port = address;
  with_port.port = 8181;
  EXPECT_EQ(peers.heard(with_port, 0), std::nullopt);
}

}  // namespace
}  // namespace stp::port::ip_port_test
