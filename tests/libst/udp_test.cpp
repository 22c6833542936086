// SPDX-License-Identifier: BSD-3-Clause
// Names of hosts on links over UDP, and what two such links of this host carry.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

// UDP ports that are free now, all different.
template <std::size_t N>
std::array<std::string, N> free_ports() {
  std::array<int, N> fds{};
  std::array<std::string, N> ports;
  for (std::size_t i = 0; i < N; ++i) {
    fds[i] = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 name{};
    name.sin6_family = AF_INET6;
    socklen_t length = sizeof name;
    ::bind(fds[i], reinterpret_cast<const sockaddr*>(&name), length);
    ::getsockname(fds[i], reinterpret_cast<sockaddr*>(&name), &length);
    ports[i] = std::to_string(ntohs(name.sin6_port));
  }
  for (const int fd : fds) ::close(fd);
  return ports;
}

bool has_ipv6() {
  const int fd = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  name.sin6_addr = in6addr_loopback;
  const bool has =
      fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  if (fd >= 0) ::close(fd);
  return has;
}

// A connection is made, and each side hears the other.
void expect_a_conversation(const std::string& client_link, const std::string& server_link,
                           const std::string& peer) {
  std::optional<UseLink> link(server_link);
  Endpoint server(":3000");
  ASSERT_EQ(server.error(), 0) << st_strerror(server.error());
  ASSERT_EQ(st_listen(server), 0);
  link.emplace(client_link);
  Endpoint client;
  ASSERT_EQ(client.error(), 0) << st_strerror(client.error());
  st_chandle_t connected = nullptr, accepted = nullptr;
  const int error = st_connect(client, (peer + ":3000").c_str(), &connected);
  ASSERT_EQ(error, 0) << st_strerror(error);
  ASSERT_EQ(st_accept(server, &accepted), 0);
  ASSERT_EQ(send(connected, header(ST_OP_NOP)), 0);
  st_header_t got{};
  ASSERT_EQ(receive(accepted, got), 0);
  ASSERT_EQ(send(accepted, header(ST_OP_NOP)), 0);
  ASSERT_EQ(receive(connected, got), 0);
  EXPECT_EQ(st_close(connected), 0);
  EXPECT_EQ(st_close(accepted), 0);
}

TEST(UdpLinks, OfOneProgramReachEachOther) {
  const auto [a, b] = free_ports<2>();
  expect_a_conversation("udp:127.0.0.1,port=" + a, "udp:127.0.0.1,port=" + b, "127.0.0.1/" + b);
}

// Where long datagrams are lost without a report, this is all that a program sees of it.
TEST(UdpLinks, WhoWaitsInVainForAPeerThatAnswersLearnsOfTheMtu) {
  const auto [a, b] = free_ports<2>();
  std::optional<UseLink> link("udp:127.0.0.1,port=" + b);
  Endpoint server(":3000");
  ASSERT_EQ(st_listen(server), 0);
  link.emplace("udp:127.0.0.1,port=" + a);
  Endpoint client;
  const Buffer memory(1 << 16);
  st_mhandle_t region = nullptr;
  ASSERT_EQ(st_map(client, ST_MAP_TX, memory.data(), memory.length(), 0, -1, &region, nullptr), 0);
  st_chandle_t connected = nullptr, accepted = nullptr;
  ASSERT_EQ(st_connect(client, ("127.0.0.1/" + b + ":3000").c_str(), &connected), 0);
  ASSERT_EQ(st_accept(server, &accepted), 0);
  auto data = header(ST_OP_DATA, ST_FLAG_SILENT);
  data.d_id = 1;
  ASSERT_EQ(st_tx(connected, &data, nullptr, 4'096, 0, 0), 0);
  ASSERT_EQ(send(accepted, header(ST_OP_NOP)), 0);
  st_header_t got{};
  ASSERT_EQ(receive(connected, got), 0);
  timeval patience{.tv_sec = 1, .tv_usec = 0};
  ASSERT_EQ(st_rx(connected, &got, nullptr, &patience), -EWOULDBLOCK);
  const std::string text = st_strerror(-EWOULDBLOCK);
  EXPECT_NE(text.find("127.0.0.1 answers, and gets datagrams of up to 4136 bytes"),
            std::string::npos)
      << text;
  EXPECT_EQ(st_close(connected), 0);
  EXPECT_EQ(st_close(accepted), 0);
}

TEST(UdpLinks, OfADaemonAndAProgramReachEachOther) {
  const auto [a, b] = free_ports<2>();
  const Daemon daemon("udp:127.0.0.1,port=" + b);
  expect_a_conversation("udp:127.0.0.1,port=" + a, daemon.link(), "localhost/" + b);
  expect_a_conversation(daemon.link(), "udp:127.0.0.1,port=" + a, "127.0.0.1/" + a);
  expect_a_conversation(daemon.link(), daemon.link(), "127.0.0.1");
}

TEST(UdpLinks, OverIpv6ReachEachOther) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  const auto [a, b] = free_ports<2>();
  const Daemon daemon("udp:[::1],port=" + b);
  expect_a_conversation("udp:[::1],port=" + a, daemon.link(), "[::1]/" + b);
  expect_a_conversation("udp:,port=" + a, daemon.link(), "[::1]/" + b);
}

// "::ffff:127.0.0.1" is how a socket for both families writes 127.0.0.1. A link is refused so, too.
TEST(UdpLinks, KnowNoPeerByAnIpv4AddressWrittenAsOneOfIpv6) {
  const auto [a, b] = free_ports<2>();
  const UseLink link("udp:127.0.0.1,port=" + a);
  Endpoint client;
  st_macaddr_t mac = 0;
  EXPECT_EQ(st_macaddr(client, ("[::ffff:127.0.0.1]/" + b).c_str(), &mac), -EINVAL);
  EXPECT_NE(std::string(st_strerror(-EINVAL)).find("is an IPv4 address: write 127.0.0.1"),
            std::string::npos)
      << st_strerror(-EINVAL);
}

TEST(UdpLinks, KnowThisHostByItsAddressAndTheirPort) {
  const auto [own, other] = free_ports<2>();
  const UseLink link("udp:127.0.0.1,port=" + own);
  Endpoint client;
  st_macaddr_t mac = 0, self = 0;
  ASSERT_EQ(st_macaddr(client, nullptr, &self), 0);
  for (const auto& name : {std::string("localhost"), std::string("127.0.0.1"), "127.0.0.1/" + own,
                           "localhost/" + own}) {
    ASSERT_EQ(st_macaddr(client, name.c_str(), &mac), 0) << name;
    EXPECT_EQ(mac, self) << name;
  }
  ASSERT_EQ(st_macaddr(client, ("localhost/" + other).c_str(), &mac), 0);
  EXPECT_NE(mac, self) << "another program of this host";
  ASSERT_EQ(st_macaddr(client, "192.0.2.1/8181", &mac), 0);
  EXPECT_EQ(mac, 0x0204'c000'0201U);
}

// Addresses of 127.0.0.0/8 are all this host's.
TEST(UdpLinks, AtDifferentAddressesOfOneHostReachEachOther) {
  const auto [port] = free_ports<1>();
  const std::string a = "udp:127.0.0.1,port=" + port, b = "udp:127.0.0.2,port=" + port;
  expect_a_conversation(a, b, "127.0.0.2");
  const Daemon daemon(b);
  expect_a_conversation(daemon.link(), a, "127.0.0.1");
  const UseLink link(daemon.link());
  const Endpoint client;
  st_macaddr_t mac = 0;
  EXPECT_EQ(st_macaddr(client, "[2001:db8::1]", &mac), -EHOSTUNREACH);
  EXPECT_NE(std::string(st_strerror(-EHOSTUNREACH)).find("(udp:) on a host that has IPv6, too"),
            std::string::npos)
      << st_strerror(-EHOSTUNREACH);
  const Endpoint own("127.0.0.2:3000"), elsewhere("127.0.0.1:3000");
  EXPECT_EQ(own.error(), 0);
  EXPECT_EQ(elsewhere.error(), -EADDRNOTAVAIL);
  EXPECT_NE(std::string(st_strerror(-EADDRNOTAVAIL)).find("'127.0.0.1' is not the address of this"),
            std::string::npos)
      << st_strerror(-EADDRNOTAVAIL);
}

// Addresses of this host that no other test has at the same time.
std::string rare_address(unsigned last) {
  const auto pid = static_cast<unsigned>(::getpid());
  return "127." + std::to_string(128 + (pid >> 12) % 64) + "." + std::to_string((pid >> 4) % 256) +
         "." + std::to_string(1 + pid % 16 * 8 + last);
}

// Stations of IP itself have no ports.
TEST(IpLinks, OfOneHostReachEachOtherAndNameTheLinkForTheOtherFamily) {
  const auto a = "ip:" + rare_address(0), b = "ip:" + rare_address(1);
  const UseLink link(a);
  const Endpoint client;
  const std::string why = client.error() == 0 ? "" : st_strerror(client.error());
  if (why.find("CAP_NET_RAW") != std::string::npos) GTEST_SKIP() << why;
  ASSERT_EQ(client.error(), 0) << why;
  st_macaddr_t mac = 0;
  EXPECT_EQ(st_macaddr(client, "[2001:db8::1]", &mac), -EHOSTUNREACH);
  const std::string text = st_strerror(-EHOSTUNREACH);
  EXPECT_NE(text.find("open a link for such addresses (ip:[::]), or for both (udp:)"),
            std::string::npos)
      << text;
  expect_a_conversation(a, b, rare_address(1));
}

TEST(UdpLinks, AtAllAddressesAreAtEachOne) {
  const auto [port] = free_ports<1>();
  const UseLink link("udp:,port=" + port);
  Endpoint client;
  st_macaddr_t mac = 0, self = 0;
  ASSERT_EQ(st_macaddr(client, nullptr, &self), 0);
  for (const char* name : {"127.0.0.1", "127.0.0.2"}) {
    ASSERT_EQ(st_macaddr(client, name, &mac), 0) << name;
    EXPECT_EQ(mac, self) << name;
  }
}

TEST(UdpLinks, WithAPortThatIsFreeTakeLocalhostForTheUsualOne) {
  const UseLink link("udp:127.0.0.1,port=0");
  Endpoint client;
  st_macaddr_t mac = 0;
  ASSERT_EQ(st_macaddr(client, "localhost", &mac), 0);
  EXPECT_EQ(mac, 0x0204'7f00'0001U) << "127.0.0.1 with port 8181";
}

// For who listens, there is no other port of the link than its own.
TEST(UdpLinks, WithAPortThatIsFreeListenAtTheirAddressWithoutIt) {
  for (const auto* const link : {"udp:127.0.0.1,port=0", "udp:,port=0"}) {
    const UseLink use(link);
    for (const auto* const name : {"127.0.0.1:3000", "localhost:3000", ":3000"}) {
      const Endpoint endpoint(name);
      EXPECT_EQ(endpoint.error(), 0)
          << link << ' ' << name << ": " << st_strerror(endpoint.error());
    }
  }
  const UseLink use("udp:127.0.0.1,port=0");
  EXPECT_EQ(Endpoint("127.0.0.1/1:3000").error(), -EADDRNOTAVAIL);
  EXPECT_EQ(Endpoint("127.0.0.2:3000").error(), -EADDRNOTAVAIL);
}

TEST(UdpLinks, TellWhichAddressesOfANameTheyHaveTried) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  ASSERT_EQ(::getaddrinfo("localhost", nullptr, &hints, &found), 0);
  const bool has_both = found->ai_next != nullptr && found->ai_next->ai_family != found->ai_family;
  ::freeaddrinfo(found);
  if (!has_both) GTEST_SKIP() << "localhost has one address here";
  const auto [own, closed] = free_ports<2>();
  const UseLink link("udp:,port=" + own);
  Endpoint client;
  set_option(client, ST_OPT_CONNECT_PATIENCE, 300);
  st_chandle_t connected = nullptr;
  ASSERT_EQ(st_connect(client, ("localhost/" + closed + ":3000").c_str(), &connected), -ETIMEDOUT);
  const std::string why = st_strerror(-ETIMEDOUT);
  EXPECT_NE(why.find("tried of 'localhost': "), why.npos) << why;
  for (const auto* const address : {"127.0.0.1", "[::1]"})
    EXPECT_NE(why.find(address), why.npos) << why;
}

// Anybody can be the reason of what the link has heard last.
TEST(UdpLinks, TellOfAPeerOnlyWhatIsTrueOfIt) {
  const auto [own, closed, silent] = free_ports<3>();
  const Daemon daemon("udp:127.0.0.1,port=" + own);
  const int bound = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(static_cast<std::uint16_t>(std::stoul(silent)));
  ASSERT_EQ(::bind(bound, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  const UseLink link(daemon.link());
  Endpoint client;
  set_option(client, ST_OPT_CONNECT_PATIENCE, 300);
  const auto reason = [&](const std::string& port) {
    st_chandle_t connected = nullptr;
    EXPECT_EQ(st_connect(client, ("127.0.0.1/" + port + ":3000").c_str(), &connected), -ETIMEDOUT);
    return std::string(st_strerror(-ETIMEDOUT));
  };
  EXPECT_NE(reason(closed).find("127.0.0.1/" + closed + " has no socket"), std::string::npos);
  EXPECT_EQ(reason(silent).find("has no socket"), std::string::npos) << reason(silent);
  EXPECT_NE(reason(silent).find("the UDP ports of both links"), std::string::npos)
      << reason(silent);
  st_chandle_t connected = nullptr;
  EXPECT_EQ(st_connect(client, "[02:11:22:33:44:55]:3000", &connected), -ETIMEDOUT);
  const std::string unknown = st_strerror(-ETIMEDOUT);
  EXPECT_NE(unknown.find("over IP a peer is named by its IP address"), unknown.npos) << unknown;
  ::close(bound);
}

TEST(UdpLinks, RefuseWhatTheyCannotReach) {
  const auto [own] = free_ports<1>();
  const UseLink link("udp:127.0.0.1,port=" + own);
  Endpoint client;
  st_macaddr_t mac = 0;
  EXPECT_EQ(st_macaddr(client, "224.0.0.1", &mac), -EHOSTUNREACH);
  EXPECT_NE(std::string(st_strerror(-EHOSTUNREACH)).find("224.0.0.1 is the address of many hosts"),
            std::string::npos);
  EXPECT_EQ(st_macaddr(client, "[2001:db8::1]", &mac), -EHOSTUNREACH);
  const std::string other = st_strerror(-EHOSTUNREACH);
  EXPECT_NE(other.find("IPv6 address only"), std::string::npos) << other;
  EXPECT_EQ(other.find("MAC"), std::string::npos) << "no station of this link has one: " << other;
  for (const char* wrong : {"127.0.0.1/0", "127.0.0.1/65536", "127.0.0.1/", "127.0.0.1/x",
                            "[02:00:00:00:00:01]/8181", "[127.0.0.1]", "[2001:db8::zz]"})
    EXPECT_EQ(st_macaddr(client, wrong, &mac), -EINVAL) << wrong;
}

TEST(UdpLinks, SayThatALinkLocalAddressNeedsItsInterface) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  const auto [own] = free_ports<1>();
  const UseLink link("udp:[::1],port=" + own);
  Endpoint client;
  st_macaddr_t mac = 0;
  EXPECT_EQ(st_macaddr(client, "[fe80::1]", &mac), -EHOSTUNREACH);
  EXPECT_NE(std::string(st_strerror(-EHOSTUNREACH)).find("[fe80::1%eth0]"), std::string::npos)
      << st_strerror(-EHOSTUNREACH);
}

TEST(UdpLinks, AloneHaveUdpPorts) {
  const UseLink link("loop");
  Endpoint client;
  st_macaddr_t mac = 0;
  EXPECT_EQ(st_macaddr(client, "127.0.0.1/8181", &mac), -EINVAL);
  EXPECT_NE(std::string(st_strerror(-EINVAL)).find("udp:"), std::string::npos)
      << st_strerror(-EINVAL);
  EXPECT_EQ(st_macaddr(client, "[2001:db8::1]", &mac), -EHOSTUNREACH);
}

TEST(UdpLinks, AUdpPortBehindTheColonIsTold) {
  const UseLink link("loop");
  Endpoint client;
  st_chandle_t connected = nullptr;
  EXPECT_EQ(st_connect(client, "127.0.0.1:3000/8181", &connected), -EINVAL);
  EXPECT_NE(std::string(st_strerror(-EINVAL)).find("HOST/UDPPORT:PORT"), std::string::npos)
      << st_strerror(-EINVAL);
}

TEST(UdpLinks, AnAddressWithoutItsBracketsIsTold) {
  const UseLink link("loop");
  Endpoint client;
  st_macaddr_t mac = 0;
  for (const std::string text : {"2001:db8::1", "fe80::1%eth0", "02:00:00:00:00:01"}) {
    EXPECT_EQ(st_macaddr(client, text.c_str(), &mac), -EINVAL);
    EXPECT_NE(std::string(st_strerror(-EINVAL)).find("[" + text + "]"), std::string::npos)
        << st_strerror(-EINVAL);
  }
}

}  // namespace
}  // namespace stp::test
