// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/routes.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <thread>

#include "tests/dpdk_port/link_pair.h"
#include "tests/dpdk_port/network_namespace.h"

namespace stp::port::routes_test {
namespace {

// With this secret the stations of a test have places of their own.
struct FixedRandom : Random {
  std::uint32_t next() override { return 2; }
};

// Whether this thread can no longer ask for the names of interfaces.
bool forbid_names_of_interfaces() {
  std::array filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIOCGIFNAME, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// A host with an interface, in a network namespace.
class RoutesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!here_.missing().empty()) GTEST_SKIP() << here_.missing();
    ASSERT_TRUE(NetworkNamespace::make_veth(1500));
    ip("link set lo up");
    ip("address add 10.9.0.1/24 dev stp0");
    ip("address add 10.9.0.3/24 dev stp0");
    ip("route add 10.8.0.0/16 via 10.9.0.2");
    ASSERT_FALSE(HasFailure()) << "no routes here";
    has_ipv6_ = NetworkNamespace::ip("address add fd00:9::1/64 dev stp0 nodad") &&
                NetworkNamespace::ip("route add fd00:8::/32 via fd00:9::2");
  }
  static void ip(const std::string& arguments) {
    EXPECT_TRUE(NetworkNamespace::ip(arguments)) << arguments;
  }
  MacAddr name(const InternetAddress& host, const OwnAddress& own = {}) {
    auto address = host;
    address.port = wire::kUdpPort;
    return peers_.know(address, 0, own).value();
  }
  bool shared(const std::string& station, const std::string& own = "") {
    return routes.is_shared(
        name(parse_internet_address(station).value(),
             own.empty() ? OwnAddress{} : OwnAddress{parse_internet_address(own)->ip}));
  }
  // The same, of a link at `own`.
  bool shared_at(InternetAddress own, std::uint16_t port, const std::string& station) {
    own.port = port;
    Routes of_link(peers_, own, random_);
    return of_link.is_shared(name(parse_internet_address(station).value()));
  }
  bool shared_at(const std::string& own, const std::string& station) {
    return shared_at(parse_internet_address(own).value(), wire::kUdpPort, station);
  }

 private:
  const NetworkNamespace here_;
  FixedRandom random_;
  Peers peers_{random_};

 protected:
  bool has_ipv6_ = false;
  Routes routes{peers_, InternetAddress{}, random_};
};

// protocol: 13.9
TEST_F(RoutesTest, WaysThroughARouterAreShared) {
  EXPECT_TRUE(shared("10.8.0.5"));
  EXPECT_TRUE(shared("10.8.0.5", "10.9.0.3"));
  EXPECT_FALSE(shared("10.9.0.2"));
  EXPECT_FALSE(shared("10.9.0.2", "10.9.0.3"));
  EXPECT_FALSE(shared("10.9.0.1")) << "this host";
  EXPECT_FALSE(shared("127.0.0.1"));
  EXPECT_TRUE(shared("192.0.2.1")) << "nobody knows how it is reached";
  if (!has_ipv6_) GTEST_SKIP() << "no IPv6 here";
  EXPECT_TRUE(shared("fd00:8::5"));
  EXPECT_FALSE(shared("fd00:9::2"));
  EXPECT_FALSE(shared("fd00:9::1"));
  EXPECT_FALSE(shared("::1"));
}

TEST_F(RoutesTest, SoAreWaysThroughATunnel) {
  ip("link set stp0 arp off");
  EXPECT_TRUE(shared("10.9.0.2"));
  EXPECT_FALSE(shared("10.9.0.1"));
}

TEST_F(RoutesTest, ALinkAtAnInterfaceHasTheRoutesOfThat) {
  ip("route add 10.8.0.0/16 dev stp1 metric 100");
  EXPECT_TRUE(shared("10.8.0.5"));
  routes.turn(Routes::kHolds, ::if_nametoindex("stp1"));
  EXPECT_FALSE(shared("10.8.0.5"));
}

TEST_F(RoutesTest, TellTheInterfaceThatLeadsThere) {
  const auto to = [&](const char* address) {
    return routes.interface_to({*parse_internet_address(address)});
  };
  EXPECT_EQ(to("10.9.0.2"), ::if_nametoindex("stp0"));
  EXPECT_EQ(to("10.8.0.5"), ::if_nametoindex("stp0"));
  EXPECT_EQ(to("10.9.0.1"), ::if_nametoindex("lo")) << "its own";
  EXPECT_EQ(to("127.0.0.1"), ::if_nametoindex("lo"));
  EXPECT_EQ(to("10.7.0.1"), 0U) << "no route leads there";
}

TEST_F(RoutesTest, SoAreAllWhereTheKernelDoesNotTellWhatAnInterfaceIs) {
  std::thread([&] {
    if (!forbid_names_of_interfaces()) GTEST_SKIP() << "no seccomp here";
    EXPECT_TRUE(shared("10.9.0.2"));
    EXPECT_FALSE(shared("127.0.0.1"));
  }).join();
}

TEST_F(RoutesTest, ThisHostIsNoTunnelInAVrfEither) {
  if (!NetworkNamespace::ip("link add vrf0 type vrf table 10")) GTEST_SKIP() << "no VRF here";
  ip("link set vrf0 up");
  ip("link set stp1 master vrf0");
  ip("address add 10.7.0.1/24 dev stp1");
  routes.turn(0, ::if_nametoindex("vrf0"));
  EXPECT_FALSE(shared("10.7.0.1"));
  EXPECT_FALSE(shared("10.7.0.2"));
}

TEST_F(RoutesTest, ALinkAtAnAddressHasTheRoutesOfThat) {
  ip("rule add from 10.9.0.3 table 77");
  ip("route add 10.8.0.0/16 dev stp0 table 77");
  EXPECT_TRUE(shared("10.8.0.5"));
  EXPECT_TRUE(shared_at("10.9.0.1", "10.8.0.5"));
  EXPECT_FALSE(shared_at("10.9.0.3", "10.8.0.5"));
  LinkEnd end;
  end.open("udp:10.9.0.3");
  const MacAddr station =
      end.port->find_station(parse_internet_address("10.8.0.5").value(), now()).value();
  EXPECT_FALSE(end.port->info().ways->is_shared(station));
}

TEST_F(RoutesTest, ALinkHasTheRoutesOfItsPort) {
  if (!NetworkNamespace::ip("rule add ipproto udp sport 9001 dport 8181 table 77"))
    GTEST_SKIP() << "no rules for ports here";
  ip("route add 10.8.0.0/16 dev stp0 table 77");
  EXPECT_TRUE(shared_at({}, 0, "10.8.0.5"));
  EXPECT_TRUE(shared_at({}, 9'002, "10.8.0.5"));
  EXPECT_FALSE(shared_at({}, 9'001, "10.8.0.5"));
}

// Wherever the thread is that asks.
TEST_F(RoutesTest, ALinkHasTheRoutesOfTheNetworkNamespaceThatItWasOpenedIn) {
  LinkEnd end;
  end.open("udp:10.9.0.1");
  const MacAddr station =
      end.port->find_station(parse_internet_address("10.9.0.2").value(), now()).value();
  const NetworkNamespace elsewhere;
  EXPECT_FALSE(end.port->info().ways->is_shared(station));
}

TEST_F(RoutesTest, WhatUsersSendCostsFewQuestionsInATurn) {
  constexpr unsigned kStations = 2 * Routes::kMostAsked;
  const auto count_own = [&] {
    unsigned own = 0;
    for (unsigned i = 0; i < kStations; ++i)
      if (!shared("10.9.0." + std::to_string(10 + i))) ++own;
    return own;
  };
  routes.users_send();
  EXPECT_EQ(count_own(), Routes::kMostAsked);
  EXPECT_EQ(routes.asked(), Routes::kMostAsked);
  EXPECT_EQ(count_own(), Routes::kMostAsked) << "they are known";
  routes.users_send();
  EXPECT_EQ(count_own(), kStations);
  routes.turn(Routes::kHolds, 0);
  EXPECT_EQ(routes.asked(), kStations);
  routes.users_send();
  EXPECT_EQ(count_own(), kStations) << "the last answers hold until there is a question left";
  EXPECT_EQ(routes.asked(), kStations + Routes::kMostAsked);
  routes.frames_come();
  count_own();
  EXPECT_EQ(routes.asked(), 2 * kStations);
}

// Stations that a multiplier which everybody knows would give one place.
TEST_F(RoutesTest, NobodyKnowsWhichStationsTakeTurnsAtOnePlace) {
  std::vector<MacAddr> stations;
  for (std::uint32_t i = 0; stations.size() < 8; ++i) {
    const auto station = name(InternetAddress::of(Ipv4{0x0a09'0000U + i}, 0));
    if (station.to_u64() * 0x9e37'79b9'7f4a'7c15 >> 56 == 0) stations.push_back(station);
  }
  for (unsigned round = 0; round < 2; ++round)
    for (const auto& station : stations) (void)routes.is_shared(station);
  EXPECT_LT(routes.asked(), 2 * stations.size());
}

TEST_F(RoutesTest, TheKernelIsAskedOnceASecond) {
  ASSERT_TRUE(shared("10.8.0.5"));
  ip("route change 10.8.0.0/16 dev stp0");
  routes.turn(Routes::kHolds - 1, 0);
  EXPECT_TRUE(shared("10.8.0.5"));
  EXPECT_EQ(routes.asked(), 1U);
  routes.turn(Routes::kHolds, 0);
  EXPECT_FALSE(shared("10.8.0.5"));
  EXPECT_EQ(routes.asked(), 2U);
}

}  // namespace
}  // namespace stp::port::routes_test
