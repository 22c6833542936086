// SPDX-License-Identifier: BSD-3-Clause
// The station that most lone datagrams go to has a socket of its own.
#include "dpdk_port/udp/favored_peer.h"

#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "stp/wire/checksum.h"
#include "tests/dpdk_port/network_namespace.h"
#include "tests/dpdk_port/udp/forged_reports.h"
#include "tests/dpdk_port/udp/udp_pair.h"

namespace stp::port::favored_peer_test {
namespace {

constexpr unsigned kEnough = FavoredPeer::kEnough + 3;

MacAddr source(const Frame& frame) {
  MacAddr from;
  std::copy_n(frame.begin() + 6, from.octets.size(),
              reinterpret_cast<std::byte*>(from.octets.data()));
  return from;
}

struct FavoredPair : UdpPair {
  using UdpPair::UdpPair;

  // One datagram each way, one after the other.
  void exchange(unsigned count) {
    for (unsigned i = 0; i < count; ++i, ++exchanged) {
      a.engine.send(frame_of(kData, b_at_a, a.mac(), 100, exchanged));
      ASSERT_TRUE(turn_until([&] { return b.engine.received.size() > exchanged; }));
      b.engine.send(frame_of(kData, a_at_b, b.mac(), 100, exchanged));
      ASSERT_TRUE(turn_until([&] { return a.engine.received.size() > exchanged; }));
    }
  }
  void settle() { a.ahead = b.ahead = a.ahead + FavoredPeer::kSettled; }
  void favor() {
    exchange(kEnough);
    settle();
    exchange(1);
    ASSERT_GE(socket_of(*a.port, Connected::kToSomebody), 0);
    ASSERT_GE(socket_of(*b.port, Connected::kToSomebody), 0);
  }
  void expect_all_whole() const {
    ASSERT_EQ(a.engine.received.size(), exchanged);
    ASSERT_EQ(b.engine.received.size(), exchanged);
    for (unsigned i = 0; i < exchanged; ++i) {
      ASSERT_EQ(a.engine.received[i], frame_of(kData, a.mac(), b_at_a, 100, i)) << i;
      ASSERT_EQ(b.engine.received[i], frame_of(kData, b.mac(), a_at_b, 100, i)) << i;
    }
  }
  static bool is_readable(const LinkEnd& end) {
    pollfd waker{.fd = end.port->wake_fd(), .events = POLLIN, .revents = 0};
    return ::poll(&waker, 1, 0) == 1;
  }
  static std::uint64_t favored(const LinkEnd& end) { return counter(*end.port, "udp_tx_favored"); }

  unsigned exchanged = 0;
};

void expect_both_favored(const std::string& host) {
  SCOPED_TRACE(host);
  FavoredPair pair(host);
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  const std::uint64_t before = FavoredPair::favored(pair.a);
  ASSERT_NO_FATAL_FAILURE(pair.exchange(100));
  EXPECT_EQ(FavoredPair::favored(pair.a), before + 100);
  ASSERT_NO_FATAL_FAILURE(pair.expect_all_whole());
}

TEST(FavoredPeer, LoneDatagramsPassByItsSocketUnderTheSameNames) {
  expect_both_favored("127.0.0.1");
  if (has_ipv6()) expect_both_favored("[::1]");
}

// Such a link tells of each datagram which address it came to; the socket has one.
TEST(FavoredPeer, HasTheAddressThatItKnowsTheLinkBy) {
  LinkEnd any, peer;
  any.open("udp:0.0.0.0,port=0");
  peer.open("udp:127.0.0.3,port=0");
  auto address = *parse_internet_address("127.0.0.2");
  address.port = any.port->info().udp_port;
  const MacAddr any_at_peer = peer.port->find_station(address, now()).value();
  peer.engine.send(frame_of(kData, any_at_peer, peer.mac(), 100, 1));
  ASSERT_TRUE(turn_until(any, peer, [&] { return !any.engine.received.empty(); }));
  const MacAddr peer_at_any = source(any.engine.received[0]);
  for (unsigned i = 0; i < kEnough; ++i) {
    any.engine.send(frame_of(kData, peer_at_any, any.mac(), 100, i));
    any.turn();
  }
  EXPECT_GT(counter(*any.port, "udp_tx_favored"), 0U);
  ASSERT_TRUE(turn_until(any, peer, [&] { return peer.engine.received.size() == kEnough; }));
  for (const Frame& frame : peer.engine.received)
    ASSERT_EQ(source(frame), any_at_peer) << "all came from there";
  peer.engine.send(frame_of(kData, any_at_peer, peer.mac(), 100, 2));
  ASSERT_TRUE(turn_until(any, peer, [&] { return any.engine.received.size() == 2; }));
  EXPECT_EQ(source(any.engine.received[1]), peer_at_any);
}

TEST(FavoredPeer, WakesTheLinkAndKeepsNobodyElseOut) {
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  ASSERT_TRUE(pair.a.port->prepare_to_sleep());
  EXPECT_FALSE(FavoredPair::is_readable(pair.a));
  pair.b.engine.send(frame_of(kData, pair.a_at_b, pair.b.mac(), 100, 1));
  pair.b.turn();
  EXPECT_TRUE(FavoredPair::is_readable(pair.a));
  while (pair.a.turn() > 0) continue;
  ASSERT_TRUE(pair.a.port->prepare_to_sleep());
  EXPECT_FALSE(FavoredPair::is_readable(pair.a));
  ASSERT_TRUE(Stranger(pair.a).send(make_bytes(100, 7)));
  EXPECT_TRUE(FavoredPair::is_readable(pair.a));
  EXPECT_EQ(pair.a.turn(), 1U) << "the first turn after it has slept leaves nobody out";
  EXPECT_EQ(pair.a.engine.received.back().size(), 14U + 100);
}

// The kernel looks at each datagram for who is to be woken.
TEST(FavoredPeer, IsNotWatchedByThePollOfAThreadThatStaysAwake) {
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  const auto is_watched = [&pair] {
    pair.b.engine.send(frame_of(kData, pair.a_at_b, pair.b.mac(), 100, 1));
    pair.b.turn();
    const bool readable = FavoredPair::is_readable(pair.a);
    while (pair.a.turn() > 0) continue;
    return readable;
  };
  EXPECT_TRUE(is_watched());
  for (unsigned i = 0; i < FavoredPeer::kAwake; ++i) is_watched();
  EXPECT_FALSE(is_watched());
  ASSERT_TRUE(pair.a.port->prepare_to_sleep());
  for (unsigned i = 0; i < 2 * FavoredPeer::kAwake; ++i) EXPECT_TRUE(is_watched()) << i;
  pair.a.port->woke_up();
  EXPECT_TRUE(is_watched()) << "it may sleep again soon";
}

// Turns of `a` until it has heard a stranger, beside `meanwhile`; 100: it has not.
template <typename Meanwhile>
unsigned turns_until_heard(FavoredPair& pair, Meanwhile&& meanwhile) {
  const std::uint64_t strangers = counter(*pair.a.port, "udp_strangers");
  EXPECT_TRUE(Stranger(pair.a).send(make_bytes(100, 7)));
  for (unsigned turns = 1; turns < 100; ++turns) {
    meanwhile();
    pair.a.turn();
    if (counter(*pair.a.port, "udp_strangers") > strangers) return turns;
  }
  return 100;
}

TEST(FavoredPeer, OthersAreHeardWithinAFewTurns) {
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  while (pair.a.turn() > 0) continue;
  EXPECT_LE(turns_until_heard(pair, [] {}), 4U);
  // Nothing comes from others for a while.
  for (unsigned i = 0; i < 300; ++i) {
    if (i % 16 == 0) {
      ASSERT_NO_FATAL_FAILURE(pair.exchange(1));
    }
    pair.a.turn();
  }
  EXPECT_LE(turns_until_heard(pair, [] {}), 32U);
  EXPECT_LE(turns_until_heard(pair, [] {}), 4U) << "they are not quiet any more";
}

TEST(FavoredPeer, OthersAreHeardThoughSomethingComesFromItInEachTurn) {
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  const auto send = [&pair] {
    pair.b.engine.send(frame_of(kData, pair.a_at_b, pair.b.mac(), 100, 1));
    pair.b.turn();
  };
  EXPECT_LE(turns_until_heard(pair, send), 12U);
  for (unsigned i = 0; i < 1'000; ++i) {
    send();
    pair.a.turn();
  }
  EXPECT_LE(turns_until_heard(pair, send), 40U);
}

// Turns that send much are long.
TEST(FavoredPeer, OthersAreHeardWithinAWhileHoweverLongATurnTakes) {
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  const auto turn_for = [&pair](Time length) {
    pair.b.engine.send(frame_of(kData, pair.a_at_b, pair.b.mac(), 100, 1));
    pair.b.turn();
    pair.a.ahead += length;
  };
  for (unsigned i = 0; i < 1'000; ++i) {
    turn_for(0);
    pair.a.turn();
  }
  EXPECT_LE(turns_until_heard(pair, [&] { turn_for(30 * kMicrosecond); }), 5U);
}

// Its socket is connected, so the kernel tells it of them also while the link does not listen.
// protocol: 13.8
TEST(FavoredPeer, AFloodOfForgedReportsCostsItNothing) {
  const ForgedReports forged;
  if (!forged.may_be_sent()) GTEST_SKIP() << "only root may forge reports";
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  const auto at = [](const LinkEnd& end) {
    return InternetAddress::of(Ipv4{INADDR_LOOPBACK}, end.port->info().udp_port);
  };
  std::atomic<bool> ends = false;
  std::atomic<unsigned> sent = 0;
  std::thread host([&forged, &ends, &sent, own = at(pair.a), peer = at(pair.b)] {
    while (!ends)
      if (forged.send(peer, own, ICMP_PORT_UNREACH)) ++sent;
  });
  while (sent < 20'000) pair.a.turn();
  pair.exchange(100);
  ends = true;
  host.join();
  EXPECT_GE(counter(*pair.a.port, "udp_report_floods"), 1U);
  EXPECT_EQ(counter(*pair.a.port, "udp_failed"), 0U) << pair.a.port->trouble();
  EXPECT_EQ(counter(*pair.a.port, "udp_tx_refused"), 0U);
  ASSERT_NO_FATAL_FAILURE(pair.expect_all_whole());
}

TEST(FavoredPeer, GivesWayToWhoGetsMore) {
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  LinkEnd other;
  other.open("udp:127.0.0.1,port=0");
  const MacAddr other_at_a = UdpPair::know(pair.a, other, "127.0.0.1");
  const unsigned count = 2 * kEnough;
  const std::uint64_t before = FavoredPair::favored(pair.a);
  for (unsigned i = 0; i < count + 4; ++i) {
    pair.a.engine.send(frame_of(kData, other_at_a, pair.a.mac(), 100, i));
    pair.a.turn();
  }
  EXPECT_GT(FavoredPair::favored(pair.a), before);
  ASSERT_TRUE(turn_until(pair.a, other, [&] { return other.engine.received.size() == count + 4; }));
  ASSERT_NO_FATAL_FAILURE(pair.exchange(10));
  ASSERT_NO_FATAL_FAILURE(pair.expect_all_whole());
}

// Its place costs the port a moment in which others may have it.
TEST(FavoredPeer, KeepsItsPlaceBesideOneThatGetsAsMany) {
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  LinkEnd other;
  other.open("udp:127.0.0.1,port=0");
  const MacAddr other_at_a = UdpPair::know(pair.a, other, "127.0.0.1");
  const unsigned count = 3 * kEnough;
  const std::uint64_t before = FavoredPair::favored(pair.a);
  for (unsigned i = 0; i < count; ++i)
    for (const MacAddr& to : {pair.b_at_a, other_at_a}) {
      pair.a.engine.send(frame_of(kData, to, pair.a.mac(), 100, i));
      pair.a.turn();
    }
  EXPECT_EQ(FavoredPair::favored(pair.a), before + count);
}

// For a connected socket the kernel does not check sources against its routes.
TEST(FavoredPeer, IsHeardByTheInterfaceOfTheRouteToIt) {
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  std::array<char, IF_NAMESIZE> name{};
  socklen_t length = name.size();
  ASSERT_EQ(::getsockopt(socket_of(*pair.a.port, Connected::kToSomebody), SOL_SOCKET,
                         SO_BINDTODEVICE, name.data(), &length),
            0);
  EXPECT_STREQ(name.data(), "lo");
}

// A host with two interfaces, each of which leads elsewhere.
class FavoredPeerOfTwoWays : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!space_.missing().empty()) GTEST_SKIP() << space_.missing();
    ASSERT_TRUE(NetworkNamespace::make_veth(1500));
    ASSERT_TRUE(ip("link add side0 type veth peer name side1"));
    for (const char* each : {"side0", "side1"})
      ASSERT_TRUE(ip(std::string("link set up dev ") + each));
    ASSERT_TRUE(ip("address add 10.9.0.1/24 dev stp0"));
    ASSERT_TRUE(ip("route add default dev stp0"));
    link_.open("udp:0.0.0.0");
  }
  static bool ip(const std::string& words) { return NetworkNamespace::ip(words); }
  // So that it is favored. It need not answer.
  void favor(const std::string& peer) {
    auto address = *parse_internet_address(peer);
    address.port = wire::kUdpPort;
    const MacAddr there = link_.port->find_station(address, now()).value();
    const Time limit = now() + 30 * kSecond;
    for (unsigned i = 0; counter(*link_.port, "udp_tx_favored") == 0 && now() < limit; ++i) {
      link_.engine.send(frame_of(kData, there, link_.mac(), 100, i));
      link_.turn();
    }
    ASSERT_GE(socket_of(*link_.port, Connected::kToSomebody), 0);
  }
  std::string device_of_its_socket() const {
    std::array<char, IF_NAMESIZE> name{};
    socklen_t length = name.size();
    ::getsockopt(socket_of(*link_.port, Connected::kToSomebody), SOL_SOCKET, SO_BINDTODEVICE,
                 name.data(), &length);
    return name.data();
  }
  // Whether each packet that comes by the interface has to come from where its source is.
  static bool check_sources(const char* interface) {
    std::ofstream out("/proc/sys/net/ipv4/conf/" + std::string(interface) + "/rp_filter");
    return static_cast<bool>(out << "1" << std::flush);
  }
  // The frame as a datagram of 10.9.0.2, which goes out by `from` and comes in by `to`.
  static void send_by(const char* from, const char* to, const Frame& frame) {
    const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    ifreq request{};
    std::snprintf(request.ifr_name, sizeof request.ifr_name, "%s", to);
    ASSERT_EQ(::ioctl(fd, SIOCGIFHWADDR, &request), 0);
    ether_header link{};
    std::memcpy(link.ether_dhost, request.ifr_hwaddr.sa_data, sizeof link.ether_dhost);
    link.ether_type = htons(ETHERTYPE_IP);
    std::vector<std::byte> packet;
    append(packet, std::as_bytes(std::span(&link, 1)));
    const auto payload = after_ethernet(frame);
    const auto [ip, udp] = heads_of_datagram(payload.size());
    append(packet, std::as_bytes(std::span(&ip, 1)));
    append(packet, std::as_bytes(std::span(&udp, 1)));
    append(packet, payload);
    sockaddr_ll name{};
    name.sll_family = AF_PACKET;
    name.sll_ifindex = static_cast<int>(::if_nametoindex(from));
    EXPECT_EQ(::sendto(fd, packet.data(), packet.size(), 0,
                       reinterpret_cast<const sockaddr*>(&name), sizeof name),
              static_cast<ssize_t>(packet.size()));
    ::close(fd);
  }
  static void append(std::vector<std::byte>& packet, Bytes bytes) {
    packet.insert(packet.end(), bytes.begin(), bytes.end());
  }
  static std::pair<iphdr, udphdr> heads_of_datagram(std::size_t length) {
    iphdr ip{};
    udphdr udp{};
    udp.source = udp.dest = htons(wire::kUdpPort);
    udp.len = htons(static_cast<std::uint16_t>(sizeof udp + length));
    ip.version = 4;
    ip.ihl = sizeof ip / 4;
    ip.ttl = 64;
    ip.protocol = IPPROTO_UDP;
    ip.tot_len = htons(static_cast<std::uint16_t>(sizeof ip + sizeof udp + length));
    ip.saddr = htonl(0x0a09'0002);
    ip.daddr = htonl(0x0a09'0001);
    wire::Checksum sum;
    sum.add(std::as_bytes(std::span(&ip, 1)));
    wire::store16(reinterpret_cast<std::byte*>(&ip.check), sum.wire_value());
    return {ip, udp};
  }

  NetworkNamespace space_;
  LinkEnd link_;
};

// Rules may send what comes from one address elsewhere.
TEST_F(FavoredPeerOfTwoWays, HasTheRouteOfTheAddressThatItsSocketIsAt) {
  ASSERT_TRUE(ip("route add 10.8.0.0/16 dev side0 table 77"));
  if (!ip("rule add from 10.9.0.1 table 77")) GTEST_SKIP() << "no rules for sources here";
  ASSERT_NO_FATAL_FAILURE(favor("10.8.0.5"));
  EXPECT_EQ(device_of_its_socket(), "side0");
}

// The kernel remembers by which way the first one came, and checks no source of later ones.
TEST_F(FavoredPeerOfTwoWays, WhatPretendsToBeFromItByAnotherInterfaceIsNotHeard) {
  if (!check_sources("all") || !check_sources("side0")) GTEST_SKIP() << "no rp_filter here";
  ASSERT_NO_FATAL_FAILURE(favor("10.9.0.2"));
  const Frame first = frame_of(kData, link_.mac(), {}, 100, 1);
  const Frame forged = frame_of(kData, link_.mac(), {}, 100, 2);
  const Frame last = frame_of(kData, link_.mac(), {}, 100, 3);
  send_by("stp1", "stp0", first);
  send_by("side1", "side0", forged);
  send_by("stp1", "stp0", last);
  const auto& received = link_.engine.received;
  const Time limit = now() + 30 * kSecond;
  while (received.size() < 2 && now() < limit) link_.turn();
  for (unsigned i = 0; i < 8; ++i) link_.turn();
  ASSERT_EQ(received.size(), 2U);
  EXPECT_TRUE(std::ranges::equal(after_ethernet(received[0]), after_ethernet(first)));
  EXPECT_TRUE(std::ranges::equal(after_ethernet(received[1]), after_ethernet(last)));
}

// Each try lets others have the port for a moment.
TEST(FavoredPeer, IsNoneForGoodWhereTheUserIsAnother) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  UdpPair pair;
  const auto send = [&] {
    for (unsigned i = 0; i < kEnough; ++i) {
      pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 100, i));
      pair.a.turn();
    }
  };
  bool is_nobody = false;
  // Of this thread alone.
  std::thread([&] {
    constexpr int kNobody = 65'534;
    is_nobody = ::syscall(SYS_setresuid, kNobody, kNobody, kNobody) == 0;
    send();
  }).join();
  if (!is_nobody) GTEST_SKIP() << "this process may not be another user";
  pair.a.ahead += 2 * FavoredPeer::kAgain;
  send();
  EXPECT_LT(socket_of(*pair.a.port, Connected::kToSomebody), 0);
}

// Datagrams by the dozen are joined at the link's socket.
TEST(FavoredPeer, IsNoneThatSendsMuchAtATime) {
  FavoredPair pair("127.0.0.1", ",mtu=9000");
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  constexpr unsigned kBursts = 20, kFrames = 32;
  const std::size_t before = pair.b.engine.received.size();
  for (unsigned burst = 1; burst <= kBursts; ++burst) {
    for (unsigned i = 0; i < kFrames; ++i)
      pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 1'000, i));
    ASSERT_TRUE(pair.turn_until(
        [&] { return pair.b.engine.received.size() == before + std::size_t{burst} * kFrames; }));
  }
  EXPECT_LT(socket_of(*pair.b.port, Connected::kToSomebody), 0);
  if (pair.b.port->info().driver.find("gro") != std::string::npos) {
    EXPECT_GT(counter(*pair.b.port, "udp_rx_joined"), kBursts * kFrames / 2);
  }
}

// A message of a page, with its header behind it.
TEST(FavoredPeer, IsNoneThatSendsTwoLongOnesAtATime) {
  FavoredPair pair("127.0.0.1", ",mtu=9000");
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  const std::size_t before = pair.b.engine.received.size();
  for (unsigned i = 1; i <= 8; ++i) {
    pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 5'000, i));
    pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 100, i));
    ASSERT_TRUE(pair.turn_until(
        [&] { return pair.b.engine.received.size() == before + std::size_t{2} * i; }));
  }
  EXPECT_LT(socket_of(*pair.b.port, Connected::kToSomebody), 0);
}
// Shorter ones come sooner by its socket.
TEST(FavoredPeer, MaySendTwoShorterOnesAtATime) {
  FavoredPair pair("127.0.0.1", ",mtu=9000");
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  const std::size_t before = pair.b.engine.received.size();
  for (unsigned i = 1; i <= 100; ++i) {
    pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 4'000, i));
    pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 100, i));
    ASSERT_TRUE(pair.turn_until(
        [&] { return pair.b.engine.received.size() == before + std::size_t{2} * i; }));
  }
  EXPECT_GE(socket_of(*pair.b.port, Connected::kToSomebody), 0);
}

// Whoever takes a long transfer answers each of its bursts with one datagram.
TEST(FavoredPeer, IsNoneWhoseMuchAtATimeIsAnswered) {
  UdpPair pair("127.0.0.1", ",mtu=9000");
  if (pair.b.port->info().driver.find("gro") == std::string::npos)
    GTEST_SKIP() << "the kernel joins nothing";
  constexpr unsigned kFrames = 8;
  for (unsigned i = 0; i < 2 * kEnough; ++i) {
    for (unsigned j = 0; j < kFrames; ++j)
      pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 1'000, j));
    ASSERT_TRUE(pair.turn_until(
        [&] { return pair.b.engine.received.size() == std::size_t{i + 1} * kFrames; }));
    pair.b.engine.send(frame_of(kAnswer, pair.a_at_b, pair.b.mac(), 100, i));
    ASSERT_TRUE(pair.turn_until([&] { return pair.a.engine.received.size() > i; }));
  }
  EXPECT_EQ(counter(*pair.b.port, "udp_tx_favored"), 0U);
  EXPECT_EQ(counter(*pair.b.port, "udp_rx_joined"), 2U * kEnough * kFrames);
}

TEST(FavoredPeer, ThatEndsIsToldOfAndFoundAgain) {
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  const std::string link = "udp:127.0.0.1,port=" + std::to_string(pair.b.port->info().udp_port);
  pair.b.port.reset();
  for (unsigned i = 0; i < 4; ++i) {
    pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 100, i));
    pair.a.turn();
  }
  EXPECT_NE(pair.a.port->trouble().find("has no socket"), std::string::npos);
  EXPECT_EQ(counter(*pair.a.port, "udp_tx_refused"), 0U);
  pair.b.open(link);
  const std::size_t before = pair.b.engine.received.size();
  pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 100, 9));
  ASSERT_TRUE(pair.turn_until([&] { return pair.b.engine.received.size() > before; }));
}

// Anybody may forge reports, with each of which one call fails.
TEST(FavoredPeer, StaysSoBesideForgedReportsAsLongAsItAnswers) {
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  const int fd = socket_of(*pair.a.port, Connected::kToSomebody);
  const auto before = FavoredPair::favored(pair.a);
  const unsigned count = 3 * FavoredPeer::kMostFailures;
  // To a port that nobody has: the kernel reports to the socket that sends, as for its own peer.
  const auto report = [&] {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    auto* const as_any = reinterpret_cast<sockaddr*>(&peer);
    ASSERT_EQ(::getpeername(fd, as_any, &length), 0);
    sockaddr_in nobody{};
    nobody.sin_family = AF_INET;
    nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    nobody.sin_port = htons(10);
    ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&nobody), sizeof nobody), 0);
    ASSERT_EQ(::send(fd, "1", 1, MSG_DONTWAIT), 1);
    ASSERT_EQ(::connect(fd, as_any, length), 0);
  };
  for (unsigned i = 0; i < count; ++i) {
    ASSERT_NO_FATAL_FAILURE(report());
    ASSERT_NO_FATAL_FAILURE(pair.exchange(2));
  }
  EXPECT_GT(counter(*pair.a.port, "udp_reports"), 0U);
  EXPECT_EQ(FavoredPair::favored(pair.a), before + count) << "each second one failed";
  EXPECT_EQ(socket_of(*pair.a.port, Connected::kToSomebody), fd);
  ASSERT_NO_FATAL_FAILURE(pair.expect_all_whole());
}

TEST(FavoredPeer, ReportsThatItsSocketHasAreCounted) {
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  pair.b.port.reset();
  ASSERT_EQ(::send(socket_of(*pair.a.port, Connected::kToSomebody), "1", 1, MSG_DONTWAIT), 1);
  pair.a.engine.send(frame_of(kData, pair.b_at_a, pair.a.mac(), 100, 1));
  for (unsigned i = 0; i < 4; ++i) pair.a.turn();
  EXPECT_EQ(counter(*pair.a.port, "udp_reports"), 2U) << "one by each socket";
}

// What answers strangers, and what may be marked.
TEST(FavoredPeer, IsNoStrangerAndGetsNoMarksByThatSocket) {
  UdpPair pair;
  for (unsigned i = 0; i < 2 * kEnough; ++i) {
    pair.a.engine.send_to_stranger(frame_of(kData, pair.b_at_a, pair.a.mac(), 100, i));
    pair.a.turn();
  }
  EXPECT_LT(socket_of(*pair.a.port, Connected::kToSomebody), 0);
  for (unsigned i = 0; i < 2 * kEnough; ++i) {
    pair.a.engine.send_to_be_marked(frame_of(kData, pair.b_at_a, pair.a.mac(), 100, i));
    pair.a.turn();
  }
  EXPECT_EQ(counter(*pair.a.port, "udp_tx_favored"), 0U);
}

// Two sockets of one user could share the port if both ask for it.
TEST(FavoredPeer, LetsNobodyElseHaveThePort) {
  FavoredPair pair;
  ASSERT_NO_FATAL_FAILURE(pair.favor());
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(pair.a.port->info().udp_port);
  EXPECT_NE(::bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ::close(fd);
}

TEST(LoneAnswer, IsAskedForMoreOftenUntilItComes) {
  LoneAnswer answer;
  EXPECT_EQ(answer.asks(), 1U);
  answer.sent();
  EXPECT_EQ(answer.asks(), LoneAnswer::kAsks);
  answer.turn(false);
  EXPECT_EQ(answer.asks(), LoneAnswer::kAsks);
  answer.turn(true);
  EXPECT_EQ(answer.asks(), 1U);
}

TEST(LoneAnswer, IsNotAskedForMoreOftenForLong) {
  LoneAnswer answer;
  answer.sent();
  for (unsigned i = 0; i < LoneAnswer::kTurns; ++i) {
    EXPECT_EQ(answer.asks(), LoneAnswer::kAsks) << i;
    answer.turn(false);
  }
  EXPECT_EQ(answer.asks(), 1U);
  answer.turn(false);
  EXPECT_EQ(answer.asks(), 1U);
}

}  // namespace
}  // namespace stp::port::favored_peer_test
