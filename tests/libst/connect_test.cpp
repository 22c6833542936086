// SPDX-License-Identifier: BSD-3-Clause
// Setting up and ending connections.
#include <netdb.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

class Connect : public LibstTest {};

bool is_known(const char* host, int family) {
  addrinfo wanted{};
  wanted.ai_family = family;
  addrinfo* found = nullptr;
  const bool known = ::getaddrinfo(host, nullptr, &wanted, &found) == 0;
  if (known) ::freeaddrinfo(found);
  return known;
}

bool has_ipv6_only(const char* host) {
  return is_known(host, AF_INET6) && !is_known(host, AF_INET);
}

STP_BOTH_WAYS(Connect);

TEST_P(Connect, EveryNameOfThisHostReachesIt) {
  Endpoint server(":3000"), client;
  ASSERT_EQ(st_listen(server), 0);
  st_macaddr_t mac = 0;
  ASSERT_EQ(st_macaddr(client, nullptr, &mac), 0);
  char bracketed[64];
  std::snprintf(bracketed, sizeof bracketed, "[%02x:%02x:%02x:%02x:%02x:%02x]:3000",
                static_cast<unsigned>(mac >> 40 & 0xff), static_cast<unsigned>(mac >> 32 & 0xff),
                static_cast<unsigned>(mac >> 24 & 0xff), static_cast<unsigned>(mac >> 16 & 0xff),
                static_cast<unsigned>(mac >> 8 & 0xff), static_cast<unsigned>(mac & 0xff));
  for (const auto* const name : {":3000", "localhost:3000", "127.0.0.1:3000", "127.9.9.9:3000",
                                 static_cast<const char*>(bracketed)}) {
    st_chandle_t connected = nullptr, accepted = nullptr;
    const auto error = st_connect(client, name, &connected);
    ASSERT_EQ(error, 0) << name << ": " << st_strerror(error);
    ASSERT_EQ(st_accept(server, &accepted), 0);
    EXPECT_EQ(st_close(connected), 0);
    EXPECT_EQ(st_close(accepted), 0);
  }
}

TEST_P(Connect, AServiceNameIsAPort) {
  Endpoint server("localhost:http"), client;
  if (server.error() == -EINVAL) {
    GTEST_SKIP() << "this machine knows no service names";
  }
  ASSERT_EQ(st_listen(server), 0);
  st_chandle_t connected = nullptr;
  EXPECT_EQ(st_connect(client, ":80", &connected), 0);
}

TEST_P(Connect, MalformedNamesAreInvalid) {
  Endpoint client;
  st_chandle_t connected = nullptr;
  for (const auto* const name :
       {"", ":", "host", "host:", ":0", ":4294967296", ":99999999999", ":-1", "a b:1",
        "[02:00:00]:1", "[02:00:00:00:00:01:1", "[01:00:00:00:00:01]:1", "[00:00:00:00:00:00]:1",
        "ho/st:1", ":no-such-service-here", "[]:1", "[:1"}) {
    EXPECT_EQ(st_connect(client, name, &connected), -EINVAL) << name;
    EXPECT_EQ(Endpoint(name).error(), -EINVAL) << name;
  }
  EXPECT_EQ(st_connect(client, nullptr, &connected), -EINVAL);
  EXPECT_EQ(st_connect(client, ":3000", nullptr), -EINVAL);
  EXPECT_EQ(st_create(":3000", nullptr), -EINVAL);
}

TEST_P(Connect, AnAddressWithoutBracketsOrPortIsToldWhichItLacks) {
  Endpoint client;
  st_chandle_t connected = nullptr;
  for (const auto& [name, lacks] : {std::pair{"fe80::1", "without a port: write [fe80::1]:PORT"},
                                    {"02:00:00:00:00:01", "write [02:00:00:00:00:01]:PORT"},
                                    {"fe80::1:3000", "write it in brackets, [fe80::1]"}}) {
    EXPECT_EQ(st_connect(client, name, &connected), -EINVAL) << name;
    EXPECT_NE(std::string(st_strerror(-EINVAL)).find(lacks), std::string::npos)
        << name << ": " << st_strerror(-EINVAL);
  }
}

TEST_P(Connect, UnknownHostsAreUnreachable) {
  Endpoint client;
  st_chandle_t connected = nullptr;
  st_macaddr_t mac = 0;
  EXPECT_EQ(st_connect(client, "no-such-host.invalid:1", &connected), -EHOSTUNREACH);
  EXPECT_NE(std::string(st_strerror(-EHOSTUNREACH)).find("no-such-host.invalid"),
            std::string::npos);
  EXPECT_EQ(st_macaddr(client, "no-such-host.invalid", &mac), -EHOSTUNREACH);
  if (has_ipv6_only("ip6-localhost")) {
    EXPECT_EQ(st_macaddr(client, "ip6-localhost", &mac), -EHOSTUNREACH);
    EXPECT_NE(std::string(st_strerror(-EHOSTUNREACH)).find("IPv6 address only"), std::string::npos);
  }
  EXPECT_EQ(st_macaddr(client, "not a host", &mac), -EINVAL);
  EXPECT_EQ(st_macaddr(client, nullptr, nullptr), -EINVAL);
}

TEST_P(Connect, ForAnAddressNobodyAnswersForTheTimeRunsOut) {
  Endpoint client;
  st_chandle_t connected = nullptr;
  st_macaddr_t mac = 0;
  EXPECT_EQ(st_connect(client, "192.0.2.77:3000", &connected), -ETIMEDOUT);
  EXPECT_EQ(st_macaddr(client, "192.0.2.77", &mac), -EHOSTUNREACH);
  EXPECT_NE(std::string(st_strerror(-EHOSTUNREACH)).find("192.0.2.77"), std::string::npos)
      << st_strerror(-EHOSTUNREACH);
}

TEST_P(Connect, ASuccessHasNotTheTextOfAnEarlierFailure) {
  Endpoint client;
  st_macaddr_t mac = 0;
  ASSERT_EQ(st_macaddr(client, "not a host", &mac), -EINVAL);
  ASSERT_EQ(st_macaddr(client, nullptr, &mac), 0);
  EXPECT_STREQ(st_strerror(0), std::strerror(0));
}

TEST_P(Connect, AnEndpointCannotBeCreatedForAnotherHost) {
  EXPECT_EQ(Endpoint("[02:ff:ff:ff:ff:fe]:3000").error(), -EADDRNOTAVAIL);
}

TEST_P(Connect, WhereNobodyListensConnectionsAreRefused) {
  Endpoint client;
  st_chandle_t connected = nullptr;
  EXPECT_EQ(st_connect(client, ":3999", &connected), -ECONNREFUSED);
  EXPECT_EQ(connected, nullptr);
}

TEST_P(Connect, WhereNobodyIsTheTimeRunsOutWithinFiveSeconds) {
  Endpoint client;
  st_chandle_t connected = nullptr;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(st_connect(client, "[02:ff:ff:ff:ff:fe]:3000", &connected), -ETIMEDOUT);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(6));
}

TEST_P(Connect, AMacAddressIsItsOctetsInOrder) {
  Endpoint client;
  st_macaddr_t mac = 0;
  ASSERT_EQ(st_macaddr(client, "[02:00:00:00:00:7f]", &mac), 0);
  EXPECT_EQ(mac, 0x02000000007fu);
  st_macaddr_t own = 0, local = 0;
  ASSERT_EQ(st_macaddr(client, nullptr, &own), 0);
  ASSERT_EQ(st_macaddr(client, "localhost", &local), 0);
  EXPECT_EQ(own, local);
}

TEST_P(Connect, OnePortHasOneListener) {
  Endpoint first(":3000"), second(":3000");
  ASSERT_EQ(st_listen(first), 0);
  EXPECT_EQ(st_listen(second), -EADDRINUSE);
  first.reset();
  EXPECT_EQ(st_listen(second), 0);
}

TEST_P(Connect, WithoutAPortThereIsNoListeningAndWithoutListeningNoAccepting) {
  Endpoint nameless, named(":3000");
  st_chandle_t accepted = nullptr;
  EXPECT_EQ(st_listen(nameless), -EINVAL);
  EXPECT_EQ(st_accept(named, &accepted), -EINVAL);
  ASSERT_EQ(st_listen(named), 0);
  EXPECT_EQ(st_accept(named, nullptr), -EINVAL);
}

TEST_P(Connect, AcceptWaitsForAClient) {
  Endpoint server(":3000"), client;
  ASSERT_EQ(st_listen(server), 0);
  st_chandle_t connected = nullptr, accepted = nullptr;
  int result = 1;
  std::thread accepting([&] { result = st_accept(server, &accepted); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(st_connect(client, ":3000", &connected), 0);
  accepting.join();
  EXPECT_EQ(result, 0);
  st_header_t got;
  ASSERT_EQ(send(connected, header(ST_OP_NOP)), 0);
  EXPECT_EQ(receive(accepted, got), 0);
}

TEST_P(Connect, DeletingAnEndpointClosesItsConnectionsAndFreesItsMemory) {
  Endpoint server(":3000");
  ASSERT_EQ(st_listen(server), 0);
  Buffer memory(1 << 16);
  for (int i = 0; i < 3; ++i) {
    Endpoint client;
    st_chandle_t connected = nullptr, accepted = nullptr;
    st_mhandle_t region = nullptr;
    ASSERT_EQ(st_connect(client, ":3000", &connected), 0);
    ASSERT_EQ(st_accept(server, &accepted), 0);
    ASSERT_EQ(st_map(client, ST_MAP_TX, memory.data(), memory.length(), 0, -1, &region, nullptr),
              0);
    ASSERT_EQ(send(connected, header(ST_OP_NOP)), 0);
    client.reset();
    st_header_t got;
    EXPECT_EQ(receive(accepted, got), 0);
    EXPECT_EQ(receive(accepted, got), -ENOTCONN);
    EXPECT_EQ(st_close(connected), -EBADF);
    EXPECT_EQ(st_unmap(region), -EBADF);
    EXPECT_EQ(st_close(accepted), 0);
  }
}

TEST_P(Connect, BothSidesMayCloseAtOnce) {
  Endpoint server(":3000"), client;
  ASSERT_EQ(st_listen(server), 0);
  for (int i = 0; i < 20; ++i) {
    st_chandle_t connected = nullptr, accepted = nullptr;
    ASSERT_EQ(st_connect(client, ":3000", &connected), 0);
    ASSERT_EQ(st_accept(server, &accepted), 0);
    std::thread other([&] { EXPECT_EQ(st_close(accepted), 0); });
    EXPECT_EQ(st_close(connected), 0);
    other.join();
  }
}

// ---- signals ----

void ignore(int) {}

TEST_P(Connect, ASignalInterruptsWaiting) {
  struct sigaction action {
  }, before{};
  action.sa_handler = ignore;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  Endpoint server(":3000"), client;
  ASSERT_EQ(st_listen(server), 0);
  st_chandle_t connected = nullptr, accepted = nullptr;
  ASSERT_EQ(st_connect(client, ":3000", &connected), 0);
  ASSERT_EQ(st_accept(server, &accepted), 0);
  std::atomic<int> received = 1, accepting = 1;
  std::thread receiver([&] {
    st_header_t got;
    received = st_rx(connected, &got, nullptr, nullptr);
  });
  std::thread acceptor([&] {
    st_chandle_t another;
    accepting = st_accept(server, &another);
  });
  // A signal before a thread sleeps has no effect, as with any call, so it is sent repeatedly.
  while (received == 1 || accepting == 1) {
    if (received == 1) ::pthread_kill(receiver.native_handle(), SIGUSR1);
    if (accepting == 1) ::pthread_kill(acceptor.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  receiver.join();
  acceptor.join();
  EXPECT_EQ(received, -EINTR);
  EXPECT_EQ(accepting, -EINTR);
  ::sigaction(SIGUSR1, &before, nullptr);
}

// Makes the call in a thread that gets signals until it has returned, and first calls `meanwhile`.
template <typename Call>
int interrupted(
    Call call, const std::function<void()>& meanwhile = [] {}) {
  struct sigaction action {
  }, before{};
  action.sa_handler = ignore;
  EXPECT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<int> result = 1;
  std::thread caller([&] { result = call(); });
  meanwhile();
  while (result == 1) {
    ::pthread_kill(caller.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  caller.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  return result;
}

// The peer's program does not read, and its queue has few places.
class Unread : public ConnectedTest {
 protected:
  static constexpr int kSent = 8;
  void configure() override { set_option(server_, ST_OPT_RX_SLOTS, 1); }
  void SetUp() override {
    ConnectedTest::SetUp();
    for (int i = 0; i < kSent; ++i) ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  }
};
STP_BOTH_WAYS(Unread);

TEST_P(Unread, ASignalInterruptsClosingAndNothingIsClosed) {
  EXPECT_EQ(interrupted([&] { return st_close(connected_); }), -EINTR);
  EXPECT_EQ(interrupted([&] { return st_delete(client_); }), -EINTR);
  st_header_t got;
  for (int i = 0; i < kSent; ++i) ASSERT_EQ(receive(accepted_, got), 0);
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  ASSERT_EQ(receive(accepted_, got), 0);
  ASSERT_EQ(send(accepted_, header(ST_OP_NOP)), 0);
  ASSERT_EQ(receive(connected_, got), 0);
  EXPECT_EQ(st_close(connected_), 0);
}

TEST_P(Unread, ASignalThatEndsClosingLeavesNothingOfAnEndpointThatIsDeleted) {
  const auto close = [&] { return st_close(connected_); };
  const auto deleted = [&] {
    st_header_t got;
    EXPECT_EQ(receive(connected_, got), -ECANCELED) << "it is being closed";
    EXPECT_EQ(st_delete(client_), 0);
  };
  EXPECT_EQ(interrupted(close, deleted), -ECANCELED);
  EXPECT_EQ(st_close(connected_), -EBADF);
}

TEST_P(Unread, ClosingTellsOfWhatWasNotSent) {
  ASSERT_EQ(st_close(accepted_), 0);
  EXPECT_EQ(st_close(connected_), -EIO);
  EXPECT_NE(std::string(st_strerror(-EIO)).find("could not be sent"), std::string::npos);
  EXPECT_EQ(st_close(connected_), -EBADF);
}

}  // namespace
}  // namespace stp::test
