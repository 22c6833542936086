// SPDX-License-Identifier: BSD-3-Clause
// Links of UDP sockets whose address or interface goes away and comes back.
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>

#include "tests/dpdk_port/link_pair.h"
#include "tests/dpdk_port/network_namespace.h"
#include "tests/dpdk_port/shards_fixture.h"
#include "tests/dpdk_port/udp/forged_reports.h"
#include "tests/dpdk_port/udp/socket_of.h"

// Whether the kernel refuses what a socket that shall hear nobody needs.
static bool refuses_to_connect = false;

// Whether it has no sockets that ask it about addresses and routes.
static std::atomic<bool> refuses_netlink = false;

// In the place of libc's, for this program.
extern "C" int socket(int domain, int type, int protocol) noexcept {
  if (domain != AF_NETLINK || !refuses_netlink)
    return static_cast<int>(::syscall(SYS_socket, domain, type, protocol));
  errno = EAFNOSUPPORT;
  return -1;
}

extern "C" int connect(int fd, const sockaddr* name, socklen_t length) {
  if (!refuses_to_connect) return static_cast<int>(::syscall(SYS_connect, fd, name, length));
  errno = ENOMEM;
  return -1;
}

namespace stp::port::udp_address_test {
namespace {

class UdpAddress : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!space.missing().empty()) GTEST_SKIP() << space.missing();
    ASSERT_TRUE(NetworkNamespace::make_veth(1500));
    ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0"));
    ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.1.1/24 dev stp1"));
  }
  static MacAddr source_of(const Frame& frame) {
    MacAddr name;
    std::memcpy(name.octets.data(), frame.data() + name.octets.size(), name.octets.size());
    return name;
  }
  // Until the link says that, and these words stand in its trouble.
  static bool comes_to(LinkEnd& end, LinkState state, const std::string& words) {
    const Time limit = now() + 30 * kSecond;
    while (now() < limit) {
      end.turn();
      if (end.port->state() == state && end.port->trouble().find(words) != std::string::npos &&
          end.port->trouble().empty() == words.empty())
        return true;
    }
    return false;
  }
  static void expect_frame(LinkEnd& from, LinkEnd& to) {
    const auto address = InternetAddress::of(*to.port->info().address, to.port->info().udp_port);
    const MacAddr there = from.port->find_station(address, now()).value();
    to.engine.received.clear();
    from.engine.send(make_frame(there, from.mac(), 100, 1));
    EXPECT_TRUE(turn_until(from, to, [&] { return !to.engine.received.empty(); }));
  }

  NetworkNamespace space;
};

TEST_F(UdpAddress, WithoutItsAddressALinkIsGoneAndSaysSo) {
  LinkEnd a, b;
  a.open("udp:10.9.0.1");
  b.open("udp:10.9.1.1");
  ASSERT_TRUE(comes_to(a, LinkState::kUp, ""));
  ASSERT_NO_FATAL_FAILURE(expect_frame(a, b));
  ASSERT_TRUE(NetworkNamespace::ip("address del 10.9.0.1/24 dev stp0"));
  EXPECT_TRUE(comes_to(a, LinkState::kGone, "no interface of this host has the address 10.9.0.1"))
      << a.port->trouble();
  EXPECT_EQ(b.port->state(), LinkState::kUp) << "its own address is there";
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp1"));
  EXPECT_TRUE(comes_to(a, LinkState::kUp, "")) << "on whatever interface; " << a.port->trouble();
  ASSERT_NO_FATAL_FAILURE(expect_frame(a, b));
  ASSERT_NO_FATAL_FAILURE(expect_frame(b, a));
}

TEST_F(UdpAddress, WhoseInterfaceIsDownALinkIsDown) {
  LinkEnd end;
  end.open("udp:10.9.0.1");
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 down"));
  EXPECT_TRUE(comes_to(end, LinkState::kDown, "ip link set stp0 up")) << end.port->trouble();
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 up"));
  EXPECT_TRUE(comes_to(end, LinkState::kUp, "")) << end.port->trouble();
  ASSERT_TRUE(NetworkNamespace::ip("link set stp1 down"));
  EXPECT_TRUE(comes_to(end, LinkState::kNoCarrier, "stp0 has no carrier")) << end.port->trouble();
}

TEST_F(UdpAddress, AllAddressesAreThereAsLongAsTheHostIs) {
  LinkEnd end;
  end.open("udp:,port=0");
  ASSERT_TRUE(NetworkNamespace::ip("link del stp0"));
  for (unsigned i = 0; i < 100; ++i) end.turn();
  EXPECT_EQ(end.port->state(), LinkState::kUp) << end.port->trouble();
}

// protocol: 13.2
TEST_F(UdpAddress, ThatOfTheHostIsToldAsItIsNow) {
  ASSERT_TRUE(NetworkNamespace::ip("route add default dev stp0"));
  for (const std::string link : {"udp:", "udp:stp0", "ip:", "ip:stp0"}) {
    LinkEnd end;
    ASSERT_NO_FATAL_FAILURE(end.open(link));
    const auto before = parse_ipv4("10.9.0.1"), after = parse_ipv4("10.9.7.1");
    EXPECT_EQ(end.port->info().address, before) << link;
    ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.7.1/24 dev stp0"));
    ASSERT_TRUE(NetworkNamespace::ip("address del 10.9.0.1/24 dev stp0"));
    const Time limit = now() + 30 * kSecond;
    while (end.port->info().address != after && now() < limit) end.turn();
    EXPECT_EQ(end.port->info().address, after) << link;
    const std::string name = link.starts_with("udp:") ? "10.9.7.1/8181" : "10.9.7.1";
    EXPECT_EQ(end.port->name_of_station(end.mac()), name) << link;
    EXPECT_EQ(end.port->info().device, name) << link;
    const auto station = [&](Ipv4 ip) {
      return end.port->find_station(InternetAddress::of(ip, 0), now());
    };
    EXPECT_EQ(station(*after), end.mac()) << link;
    EXPECT_NE(station(*before), end.mac()) << "another host may have it now; " << link;
    ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0"));
    ASSERT_TRUE(NetworkNamespace::ip("address del 10.9.7.1/24 dev stp0"));
  }
}

// As where a cable is replugged, or an address is leased anew. What the host has meanwhile, an
// address of another interface, or of IPv6, or none but 127.0.0.1, is not told for ever.
TEST_F(UdpAddress, ThatOfTheHostIsToldAgainWhenItComesBack) {
  ASSERT_TRUE(NetworkNamespace::ip("address add fd00:9::1/64 dev stp0 nodad"));
  ASSERT_TRUE(NetworkNamespace::ip("route add default dev stp0"));
  LinkEnd all, named, witness;
  ASSERT_NO_FATAL_FAILURE(all.open("udp:"));
  ASSERT_NO_FATAL_FAILURE(named.open("udp:stp0,port=9001"));
  ASSERT_NO_FATAL_FAILURE(witness.open("udp:10.9.1.1,port=9002"));
  const auto address = parse_ipv4("10.9.0.1");
  const auto all_say = [&](const auto& is_so) {
    const Time limit = now() + 30 * kSecond;
    for (auto* const end : {&all, &named})
      while (!is_so(end->port->info().address) && now() < limit) end->turn();
    return is_so(all.port->info().address) && is_so(named.port->info().address);
  };
  const auto say_it = [&] { return all_say([&](const auto& told) { return told == address; }); };
  ASSERT_TRUE(say_it());
  ASSERT_TRUE(NetworkNamespace::ip("address del 10.9.0.1/24 dev stp0"));
  EXPECT_TRUE(all_say([&](const auto& told) { return told != address; }));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0"));
  ASSERT_TRUE(NetworkNamespace::ip("route add default dev stp0"));
  EXPECT_TRUE(say_it());
  ASSERT_TRUE(NetworkNamespace::ip("address flush dev stp0"));
  ASSERT_TRUE(NetworkNamespace::ip("address flush dev stp1"));
  ASSERT_TRUE(comes_to(witness, LinkState::kGone, "10.9.1.1"));
  for (unsigned i = 0; i < 100; ++i) all.turn(), named.turn();
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0"));
  ASSERT_TRUE(NetworkNamespace::ip("route add default dev stp0"));
  EXPECT_TRUE(say_it());
}

// On a host without IPv4, whichever interface the kernel names first. A router that is gone for a
// moment takes address and route along.
TEST_F(UdpAddress, ThatOfIpv6WithAWayIsToldAgainWhenItComesBack) {
  for (const std::string dev : {"stp0", "stp1"}) {
    ASSERT_TRUE(NetworkNamespace::ip("address flush dev " + dev));
    ASSERT_TRUE(NetworkNamespace::ip("address add fd00:9" + dev.substr(3) + "::1/64 dev " + dev +
                                     " nodad"));
  }
  for (const std::string dev : {"stp0", "stp1"}) {
    const std::string text = "fd00:9" + dev.substr(3) + "::1";
    const auto has_it_by_the_route = [&] {
      return NetworkNamespace::ip("-6 route replace default dev " + dev);
    };
    ASSERT_TRUE(has_it_by_the_route());
    LinkEnd end;
    ASSERT_NO_FATAL_FAILURE(end.open("udp:"));
    const auto tells_it = [&](bool yes) {
      const Time limit = now() + 30 * kSecond;
      const auto told = [&] { return end.port->info().device == "[" + text + "]/8181"; };
      while (told() != yes && now() < limit) end.turn();
      return told() == yes;
    };
    EXPECT_TRUE(tells_it(true)) << end.port->info().device;
    ASSERT_TRUE(NetworkNamespace::ip("-6 route del default dev " + dev));
    ASSERT_TRUE(NetworkNamespace::ip("address del " + text + "/64 dev " + dev));
    EXPECT_TRUE(tells_it(false));
    ASSERT_TRUE(NetworkNamespace::ip("address add " + text + "/64 dev " + dev + " nodad"));
    ASSERT_TRUE(has_it_by_the_route());
    EXPECT_TRUE(tells_it(true)) << end.port->info().device;
    ASSERT_TRUE(NetworkNamespace::ip("-6 route del default dev " + dev));
  }
}

// Programs have told it to others.
TEST_F(UdpAddress, ThatOfTheHostStaysWhereAnotherRouteIsAllThatChanges) {
  ASSERT_TRUE(NetworkNamespace::ip("route add default dev stp0"));
  LinkEnd end, witness;
  ASSERT_NO_FATAL_FAILURE(end.open("udp:"));
  ASSERT_NO_FATAL_FAILURE(witness.open("udp:stp1,port=9001"));
  ASSERT_TRUE(NetworkNamespace::ip("route change default dev stp1"));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.8.1/24 dev stp1"));
  ASSERT_TRUE(NetworkNamespace::ip("address del 10.9.1.1/24 dev stp1"));
  EXPECT_TRUE(turn_until(end, witness,
                         [&] { return witness.port->info().address == parse_ipv4("10.9.8.1"); }));
  LinkEnd later;
  ASSERT_NO_FATAL_FAILURE(later.open("udp:,port=9002"));
  EXPECT_EQ(later.port->info().address, parse_ipv4("10.9.8.1"));
  EXPECT_EQ(end.port->info().address, parse_ipv4("10.9.0.1"));
}

// A bridge is as fast as its ports, and the kernel names a speed of one of a veth pair.
TEST_F(UdpAddress, OfALinkTheSpeedIsThatOfItsInterface) {
  if (!NetworkNamespace::ip("link add stpbr type bridge")) GTEST_SKIP() << "no bridge here";
  ASSERT_TRUE(NetworkNamespace::ip("link set stpbr up"));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.8.1/24 dev stpbr"));
  LinkEnd named, at, all, other;
  ASSERT_NO_FATAL_FAILURE(at.open("udp:10.9.8.1"));
  ASSERT_NO_FATAL_FAILURE(named.open("udp:stpbr,port=9001"));
  ASSERT_NO_FATAL_FAILURE(all.open("udp:,port=9002"));
  ASSERT_NO_FATAL_FAILURE(other.open("udp:10.9.1.1,port=9003"));
  EXPECT_EQ(at.port->info().megabits, 0U) << "it has no port yet";
  ASSERT_TRUE(NetworkNamespace::ip("address flush dev stp0"));
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 master stpbr"));
  const auto comes = [](LinkEnd& end) {
    const Time limit = now() + 30 * kSecond;
    while (end.port->info().megabits == 0 && now() < limit) end.turn();
    return end.port->info().megabits;
  };
  EXPECT_EQ(comes(at), 10'000U);
  EXPECT_EQ(comes(named), 10'000U);
  LinkEnd later;
  ASSERT_NO_FATAL_FAILURE(later.open("udp:10.9.8.1,port=9004"));
  EXPECT_EQ(later.port->info().megabits, 10'000U);
  for (unsigned i = 0; i < 100; ++i) all.turn(), other.turn();
  EXPECT_EQ(all.port->info().megabits, 0U) << "nobody knows which interface leads to a peer";
  EXPECT_EQ(other.port->info().megabits, 0U) << "that leads to no line";
  ASSERT_TRUE(NetworkNamespace::ip("address flush dev stp1"));
  EXPECT_EQ(comes(all), 10'000U) << "the only one with an address";
}

// The kernel knows interfaces by number, and a new one has another number.
TEST_F(UdpAddress, AnInterfaceThatIsMadeAnewIsTakenUpByAllShards) {
  ShardedEnd end;
  end.open("udp:stp0,queues=2");
  const auto bound_to = [&](std::size_t shard) {
    int index = 0;
    socklen_t length = sizeof index;
    ::getsockopt(end.ports[shard]->wake_fd(), SOL_SOCKET, SO_BINDTOIFINDEX, &index, &length);
    return static_cast<unsigned>(index);
  };
  const auto state_comes = [&](LinkState state) {
    const Time limit = now() + 30 * kSecond;
    while (end.ports[1]->state() != state && now() < limit) end.turn();
    return end.ports[1]->state() == state;
  };
  const unsigned before = ::if_nametoindex("stp0");
  EXPECT_EQ(bound_to(0), before);
  ASSERT_TRUE(NetworkNamespace::ip("link del stp0"));
  EXPECT_TRUE(state_comes(LinkState::kGone));
  EXPECT_NE(end.ports[1]->trouble().find("there is no interface stp0"), std::string::npos)
      << end.ports[1]->trouble();
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  EXPECT_TRUE(state_comes(LinkState::kUp)) << end.ports[1]->trouble();
  ASSERT_NE(::if_nametoindex("stp0"), before);
  for (const std::size_t shard : {0U, 1U}) EXPECT_EQ(bound_to(shard), ::if_nametoindex("stp0"));
  EXPECT_EQ(end.ports[0]->info().udp_port, 8181);
}

// What it would send to stations that may not be there would be lost for ever.
TEST_F(UdpAddress, OfAnInterfaceThatIsMadeAnewNoSocketStaysAtTheOneBefore) {
  LinkEnd end;
  end.open("udp:stp0");
  ASSERT_GE(socket_of(*end.port, Connected::kToNobody), 0);
  ASSERT_TRUE(NetworkNamespace::ip("link del stp0"));
  EXPECT_TRUE(comes_to(end, LinkState::kGone, "no interface stp0")) << end.port->trouble();
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  refuses_to_connect = true;
  EXPECT_TRUE(comes_to(end, LinkState::kUp, "")) << end.port->trouble();
  refuses_to_connect = false;
  EXPECT_EQ(socket_of(*end.port, Connected::kToNobody), -1) << "the link's own has its place";
}

// The kernel would send from another one, and the peer would take that for another station.
// protocol: 13.2
// Only a link at the interface has such an address.
TEST_F(UdpAddress, OfAVrfItSaysWhichInterfaceHasItsAddress) {
  if (!NetworkNamespace::ip("link add vrf0 type vrf table 10")) GTEST_SKIP() << "no VRF here";
  LinkEnd a;
  a.open("udp:10.9.0.1");
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 master vrf0"));
  const std::string words = "10.9.0.1 is an address of stp0, which belongs to a VRF: name stp0";
  EXPECT_TRUE(comes_to(a, LinkState::kGone, words)) << a.port->trouble();
  std::string error;
  EXPECT_FALSE(open_link("udp:10.9.0.1", error));
  EXPECT_NE(error.find(words), std::string::npos) << error;
  a.port.reset();
  LinkEnd b;
  ASSERT_NO_FATAL_FAILURE(b.open("udp:stp0"));
  EXPECT_EQ(*b.port->info().address, *parse_ipv4("10.9.0.1"));
}

TEST_F(UdpAddress, OneAtAllAddressesAnswersFromTheOneThatWasAsked) {
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.9.9/32 dev lo"));
  ASSERT_TRUE(NetworkNamespace::ip("address add fd00:9::9/128 dev lo nodad"));
  ASSERT_TRUE(NetworkNamespace::ip("address add fd00:9::1/128 dev lo nodad"));
  ASSERT_TRUE(NetworkNamespace::ip("address add fe80::9/64 dev stp0 nodad"));
  for (const std::string ip : {"10.9.9.9", "10.9.1.1", "127.0.0.9", "fd00:9::9", "fe80::9%stp0"}) {
    LinkEnd asker, any;
    asker.open(ip.find(':') == std::string::npos ? "udp:10.9.0.1,port=9001"
                                                 : "udp:[fd00:9::1],port=9001");
    any.open("udp:");
    auto address = parse_internet_address(ip).value();
    address.port = any.port->info().udp_port;
    const MacAddr there = asker.port->find_station(address, now()).value();
    // On one host what is from a link-local address comes by the loopback interface.
    const auto is_from_there = [&](const Frame& frame) {
      const MacAddr source = source_of(frame);
      return source == there || (address.is_link_local() &&
                                 asker.port->name_of_station(source).starts_with("[fe80::9%lo]"));
    };
    for (unsigned i = 0; i < 3; ++i) asker.engine.send(make_frame(there, asker.mac(), 100, i));
    ASSERT_TRUE(turn_until(asker, any, [&] { return any.engine.received.size() == 3; }));
    const MacAddr from = source_of(any.engine.received.front());
    for (unsigned i = 0; i < 3; ++i) any.engine.send(make_frame(from, any.mac(), 100, i));
    any.engine.send(make_frame(from, any.mac(), 200, 3));
    ASSERT_TRUE(turn_until(asker, any, [&] { return asker.engine.received.size() == 4; }));
    for (const auto& each : asker.engine.received) EXPECT_TRUE(is_from_there(each)) << ip;
    ASSERT_GE(socket_of(*any.port, Connected::kToNobody), 0);
    asker.engine.received.clear();
    any.engine.send_to_silent(make_frame(from, any.mac(), 100, 0));
    for (unsigned i = 0; i < 3; ++i) any.engine.send_to_silent(make_frame(from, any.mac(), 200, i));
    ASSERT_TRUE(turn_until(asker, any, [&] { return asker.engine.received.size() == 4; }));
    for (const auto& each : asker.engine.received)
      EXPECT_TRUE(is_from_there(each)) << "by its other socket, " << ip;
  }
}

TEST_F(UdpAddress, AnMtuAboveThatOfItsInterfaceIsRefused) {
  for (const std::string link : {"udp:10.9.0.1", "udp:stp0", "ip:10.9.0.1"}) {
    std::string error;
    EXPECT_EQ(open_link(link + ",mtu=9000", error), nullptr) << link;
    EXPECT_NE(error.find("mtu=9000 is more than interface stp0 carries, whose MTU is 1500"),
              std::string::npos)
        << error;
    EXPECT_NE(open_link(link + ",mtu=1500", error), nullptr) << error;
  }
  LinkEnd any;
  any.open("udp:,mtu=9000");  // which interface it will send from, nobody knows
}

// As on a router with its address on an interface of its own.
TEST_F(UdpAddress, AnMtuOfAnotherInterfaceIsOneOfALinkAtAnAddress) {
  ASSERT_TRUE(NetworkNamespace::ip("link add wide0 mtu 9000 type veth peer name wide1"));
  std::string error;
  EXPECT_EQ(open_link("udp:10.9.0.1,mtu=9000", error), nullptr) << "it is down";
  ASSERT_TRUE(NetworkNamespace::ip("link set wide0 up"));
  EXPECT_NE(open_link("udp:10.9.0.1,mtu=9000", error), nullptr) << error;
  EXPECT_EQ(open_link("udp:stp0,mtu=9000", error), nullptr);
}

TEST_F(UdpAddress, TheAddressOfAllHostsOfANetworkIsNoLinks) {
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.2.1/24 broadcast 10.9.2.77 dev stp0"));
  for (const char* all : {"udp:10.9.0.255", "udp:10.9.2.77"}) {
    std::string error;
    EXPECT_EQ(open_link(all, error), nullptr) << all;
    EXPECT_NE(error.find("is the address of all hosts of the network of stp0"), std::string::npos)
        << error;
  }
  LinkEnd end;
  end.open("udp:10.9.2.1");
}

// As in a container, or a unit, whose rules keep it from asking the kernel about routes.
TEST_F(UdpAddress, ThatOfTheHostIsToldAsItIsNowWhereTheKernelReportsNoChange) {
  ASSERT_TRUE(NetworkNamespace::ip("route add default dev stp0"));
  refuses_netlink = true;
  LinkEnd end;
  end.open("udp:");
  refuses_netlink = false;
  ASSERT_TRUE(end.port);
  ASSERT_EQ(end.port->info().address, parse_ipv4("10.9.0.1"));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.7.1/24 dev stp0"));
  ASSERT_TRUE(NetworkNamespace::ip("address del 10.9.0.1/24 dev stp0"));
  refuses_netlink = true;
  end.ahead = AddressWatch::kSeldom;
  const Time limit = now() + 30 * kSecond;
  while (end.port->info().address != parse_ipv4("10.9.7.1") && now() < limit) end.turn();
  refuses_netlink = false;
  EXPECT_EQ(end.port->info().address, parse_ipv4("10.9.7.1"));
}

// To links over UDP, and over IP itself.
class Reports : public UdpAddress, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    UdpAddress::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    a_.open(over_udp() ? "udp:10.9.0.1" : "ip:10.9.0.1");
  }
  static bool over_udp() { return GetParam(); }
  // What the link says of a forged report about 10.9.1.1.
  std::string say_of(int code, std::uint16_t mtu = 0) {
    const auto own = InternetAddress::of(*a_.port->info().address, a_.port->info().udp_port);
    const auto peer = InternetAddress::of(*parse_ipv4("10.9.1.1"), own.port);
    const auto reports = counter(*a_.port, "udp_reports");
    EXPECT_TRUE(ForgedReports().send(peer, own, static_cast<std::uint8_t>(code), mtu));
    const Time limit = now() + 30 * kSecond;
    while (counter(*a_.port, "udp_reports") == reports && now() < limit) a_.turn();
    return a_.port->trouble();
  }
  LinkEnd a_;
};

INSTANTIATE_TEST_SUITE_P(To, Reports, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Udp" : "Ip"; });

TEST_P(Reports, OfWhatAFirewallRefusesItSaysSo) {
  const std::string words = "the way to 10.9.1.1" + std::string(over_udp() ? "/8181" : "") +
                            " reports: ",
                    why = "a firewall there forbids it";
  for (const int code : {ICMP_NET_ANO, ICMP_HOST_ANO, ICMP_PKT_FILTERED}) {
    const auto says = say_of(code);
    EXPECT_TRUE(says.find(words) != says.npos && says.find(why) != says.npos) << says;
  }
  const auto says = say_of(ICMP_HOST_UNREACH);
  EXPECT_TRUE(says.find(words) != says.npos && says.find(why) == says.npos) << says;
  EXPECT_NE(says.find("see whether it answers ping 10.9.1.1"), says.npos) << says;
}

TEST_P(Reports, ThatNobodyIsThereAreToldOfThatPeer) {
  const auto says = say_of(over_udp() ? ICMP_PORT_UNREACH : ICMP_PROT_UNREACH);
  EXPECT_NE(says.find(over_udp() ? "10.9.1.1/8181 has no socket for that port"
                                 : "10.9.1.1 has no socket for IP protocol 118"),
            says.npos)
      << says;
  const auto other = say_of(over_udp() ? ICMP_PROT_UNREACH : ICMP_PORT_UNREACH);
  EXPECT_NE(other.find(over_udp() ? "takes no UDP" : "a firewall there forbids it"), other.npos)
      << other;
  const auto station = [&](const char* address) {
    return a_.port->find_station(InternetAddress::of(*parse_ipv4(address), 0), now()).value();
  };
  EXPECT_TRUE(a_.port->is_reported_gone(station("10.9.1.1")));
  EXPECT_FALSE(a_.port->is_reported_gone(station("10.9.1.2")));
}

// protocol: 13.6
TEST_P(Reports, OfALengthThatCannotBeNothingIsAdvised) {
  const int shortest = over_udp() ? 388 : 380;
  for (const int mtu : {0, 1, 68, shortest - 1, 1500, 9000}) {
    const auto says = say_of(ICMP_FRAG_NEEDED, static_cast<std::uint16_t>(mtu));
    EXPECT_NE(says.find("may be forged"), says.npos) << says;
    EXPECT_EQ(says.find("mtu="), says.npos) << says;
    EXPECT_EQ(a_.port->state(), LinkState::kUp);
  }
  const auto says = say_of(ICMP_FRAG_NEEDED, static_cast<std::uint16_t>(shortest));
  EXPECT_NE(says.find("open the link with mtu=" + std::to_string(shortest) +
                      " if that is so: the report may be forged"),
            says.npos)
      << says;
  EXPECT_EQ(a_.port->state(), LinkState::kUp) << "nothing was sent there";
  const auto there =
      a_.port->find_station(InternetAddress::of(*parse_ipv4("10.9.1.1"), 0), now()).value();
  a_.engine.send(make_frame(there, a_.mac(), 100, 1));
  a_.turn();
  EXPECT_EQ(a_.port->state(), LinkState::kMtu);
}

TEST_F(UdpAddress, WhereIpv6IsSwitchedOffItSaysSo) {
  ASSERT_TRUE(NetworkNamespace::ip("-6 route add fd00:7::/64 dev stp0"));
  std::ofstream all("/proc/sys/net/ipv6/conf/all/disable_ipv6");
  if (!(all << "1" << std::flush)) GTEST_SKIP() << "it cannot be switched off here";
  LinkEnd a;
  a.open("udp:");
  auto address = parse_internet_address("fd00:7::7").value();
  address.port = a.port->info().udp_port;
  const MacAddr there = a.port->find_station(address, now()).value();
  a.engine.send(make_frame(there, a.mac(), 100, 1));
  while (counter(*a.port, "udp_tx_refused") == 0) ASSERT_GT(a.turn(), 0U);
  EXPECT_NE(a.port->trouble_of(there).find("IPv6 may be switched off here"), std::string::npos)
      << a.port->trouble_of(there);
}

TEST_F(UdpAddress, BelowTheMtuThatIpv6NeedsItSaysWhyItsAddressIsGone) {
  if (!NetworkNamespace::ip("-6 address add fd00:9::1/64 dev stp0 nodad"))
    GTEST_SKIP() << "no IPv6 here";
  LinkEnd a;
  a.open("udp:[fd00:9::1]");
  EXPECT_EQ(a.port->state(), LinkState::kUp);
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 mtu 1000"));
  const std::string words = "stp0 has an MTU of 1000, and IPv6 needs 1280";
  EXPECT_TRUE(comes_to(a, LinkState::kGone, words)) << a.port->trouble();
  std::string error;
  EXPECT_FALSE(open_link("udp:[fd00:9::1],port=9001", error));
  EXPECT_NE(error.find(words), std::string::npos) << error;
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 mtu 1500"));
  const Time limit = now() + 30 * kSecond;
  while (a.port->trouble().find("MTU") != std::string::npos && now() < limit) a.turn();
  EXPECT_EQ(a.port->state(), LinkState::kGone) << "the kernel has taken it away";
  EXPECT_NE(a.port->trouble().find("'ip address add' adds it)"), std::string::npos);
  EXPECT_EQ(a.port->trouble().find("MTU"), std::string::npos) << a.port->trouble();
}

// IPv6 is not on an interface with so short packets.
TEST_F(UdpAddress, OnAHostWhoseMtuIsTooShortForIpv6ItSaysThatIpv4MayDo) {
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 mtu 400"));
  std::string error;
  EXPECT_EQ(open_link("udp:stp0,port=0", error), nullptr);
  EXPECT_NE(error.find("for IPv4 alone open udp:0.0.0.0, or udp: with an IPv4 address"),
            std::string::npos)
      << error;
  EXPECT_NE(open_link("udp:10.9.0.1,port=0", error), nullptr) << error;
}

TEST_F(UdpAddress, OfALinkLocalOneTheInterfaceMayBeItsNumber) {
  if (!NetworkNamespace::ip("-6 address add fe80::9/64 dev stp0 nodad"))
    GTEST_SKIP() << "no IPv6 here";
  const unsigned number = ::if_nametoindex("stp0");
  LinkEnd end;
  end.open("udp:[fe80::9%" + std::to_string(number) + "],port=0");
  for (unsigned i = 0; i < 10; ++i) end.turn();
  EXPECT_EQ(end.port->state(), LinkState::kUp) << end.port->trouble();
  const auto found = parse_internet_address("fe80::9%" + std::to_string(number));
  ASSERT_TRUE(found);
  EXPECT_EQ(host_of(*found), "fe80::9%stp0");
  EXPECT_FALSE(parse_internet_address("fe80::9%54321"));
}

TEST_F(UdpAddress, OfARouteThatLetsNothingThroughItSaysSo) {
  ASSERT_TRUE(NetworkNamespace::ip("route add blackhole 192.0.2.1/32"));
  ASSERT_TRUE(NetworkNamespace::ip("route add prohibit 192.0.2.2/32"));
  for (const char* link : {"udp:10.9.0.1", "udp:,port=0"}) {
    LinkEnd a;
    a.open(link);
    for (const std::string to : {"192.0.2.1", "192.0.2.2"}) {
      const auto address = InternetAddress::of(*parse_ipv4(to), 8181);
      const MacAddr there = a.port->find_station(address, now()).value();
      const auto refused = counter(*a.port, "udp_tx_refused");
      a.engine.send(make_frame(there, a.mac(), 100, 1));
      while (counter(*a.port, "udp_tx_refused") == refused) ASSERT_GT(a.turn(), 0U);
      EXPECT_NE(a.port->trouble_of(there).find("(ip route get " + to + ")"), std::string::npos)
          << a.port->trouble_of(there);
    }
  }
}

// No route to a peer is told of that peer, and costs few calls each time.
TEST_F(UdpAddress, WhatThisHostRefusesIsToldOfThatPeerOnly) {
  LinkEnd a, b;
  a.open("udp:10.9.0.1");
  b.open("udp:10.9.1.1");
  const auto nowhere = InternetAddress::of(*parse_ipv4("192.0.2.1"), 8181);
  const MacAddr lost = a.port->find_station(nowhere, now()).value();
  const MacAddr there =
      a.port->find_station(InternetAddress::of(*parse_ipv4("10.9.1.1"), 8181), now()).value();
  for (unsigned i = 0; i < 20; ++i) a.engine.send(make_frame(lost, a.mac(), 100, i));
  a.engine.send(make_frame(there, a.mac(), 100, 1));
  ASSERT_TRUE(turn_until(a, b, [&] { return !b.engine.received.empty(); }));
  EXPECT_EQ(counter(*a.port, "udp_tx_refused"), 20U);
  EXPECT_EQ(counter(*a.port, "udp_report_floods"), 0U) << "reports are still heard";
  EXPECT_NE(a.port->trouble_of(lost).find("no route leads there"), std::string::npos);
  EXPECT_EQ(a.port->trouble_of(there), "");
  EXPECT_NE(a.port->trouble().find("192.0.2.1/8181"), std::string::npos) << a.port->trouble();
}

}  // namespace
}  // namespace stp::port::udp_address_test
