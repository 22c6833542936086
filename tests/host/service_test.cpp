// SPDX-License-Identifier: BSD-3-Clause
// What clients can ask of a Service, and what they cannot.

#include "libst/host/service.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "libst/host/budgets.h"
#include "tests/host/service_fixture.h"

// The names by which this program has asked the kernel for an interface.
static std::mutex asked_mutex;
static std::set<std::string> asked_names;

// In the place of libc's, for this program.
extern "C" unsigned if_nametoindex(const char* name) {
  static const auto libc =
      reinterpret_cast<unsigned (*)(const char*)>(::dlsym(RTLD_NEXT, "if_nametoindex"));
  const std::lock_guard lock(asked_mutex);
  asked_names.insert(name);
  return libc(name);
}

namespace stp::host {
namespace {

using ServiceTest = ServiceFixture;

// protocol: 10.8, 10.24
TEST(GrantedByDefault, LeavesRoomInTheReceiveQueueAndGrowsWhereStusAreShort) {
  constexpr auto kKib = std::uint64_t{1} << 10;
  const auto jumbo = default_granted(0, 13), ethernet = default_granted(0, 10);
  EXPECT_EQ(jumbo.least, 3'072 * kKib);
  EXPECT_EQ(jumbo.most, jumbo.least);
  EXPECT_EQ(ethernet.least, 384 * kKib);
  EXPECT_EQ(ethernet.most, jumbo.most);
  const auto of_2796 = default_granted(2'796, 10);
  EXPECT_EQ(of_2796.least, 384 * kKib);
  EXPECT_EQ(of_2796.most, 1'048 * kKib) << "as much may be written off besides";
  const auto of_142 = default_granted(142, 10);
  EXPECT_EQ(of_142.least, 107 * kKib);
  EXPECT_LT(of_142.most, of_142.least) << "it does not grow";
}

TEST_F(ServiceTest, HelloTellsTheLink) {
  ASSERT_EQ(ask(alice, ipc::RequestKind::kHello), 0);
  EXPECT_EQ(reply.mac, port->info().mac.to_u64());
  EXPECT_EQ(reply.mtu, 9'000U);
  EXPECT_EQ(reply.max_stu, 13U);
  EXPECT_EQ(reply.ipv4, 0x0a090001U);
  EXPECT_STREQ(reply.text, "test");
  const auto& page = *reinterpret_cast<ipc::ClientPage*>(attachments.memory->data());
  EXPECT_EQ(page.magic, ipc::kClientPageMagic);
}

TEST_F(ServiceTest, RequestsOfAnotherVersionOrKindAreRefused) {
  auto request = request_for(ipc::RequestKind::kHello);
  request.version = ipc::kProtocolVersion + 1;
  EXPECT_EQ(ask(alice, request), -EPROTONOSUPPORT);
  EXPECT_EQ(reply.version, ipc::kProtocolVersion);
  EXPECT_EQ(ask(alice, static_cast<ipc::RequestKind>(0)), -EINVAL);
  EXPECT_EQ(ask(alice, static_cast<ipc::RequestKind>(99)), -EINVAL);
  EXPECT_EQ(ask(77, ipc::RequestKind::kHello), -EBADF);
}

TEST_F(ServiceTest, HeadersTravelBetweenTwoClients) {
  connect();
  ASSERT_TRUE(send_nop(alice, alice_end, 4711));
  turn();
  ReceivedEntry entry;
  ASSERT_TRUE(bob_end.channel.receive(entry));
  EXPECT_EQ(entry.header.sync, 4711U);
  ASSERT_TRUE(send_nop(bob, bob_end, 4712));
  turn();
  ASSERT_TRUE(alice_end.channel.receive(entry));
  EXPECT_EQ(entry.header.sync, 4712U);
}

TEST_F(ServiceTest, ABellForAnUnknownChannelIsIgnored) {
  connect();
  auto& page = page_of(alice);
  for (std::uint32_t bell = 0; bell < ipc::kMaxChannels; ++bell) page.bells.ring(bell);
  turn();
  EXPECT_EQ(alice_end.channel.state(), ChannelState::kOpen);
  // Bob's stocked channels have bell numbers, but no connection yet.
  for (std::uint32_t bell = 0; bell < 20; ++bell) page_of(bob).bells.ring(bell);
  turn();
  EXPECT_EQ(bob_end.channel.state(), ChannelState::kOpen);
}

TEST_F(ServiceTest, AcceptSaysWhenNobodyWaits) {
  const auto endpoint = open(bob);
  EXPECT_EQ(on_endpoint(bob, ipc::RequestKind::kAccept, endpoint), -EINVAL);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, endpoint), 0);
  EXPECT_EQ(on_endpoint(bob, ipc::RequestKind::kAccept, endpoint), -EAGAIN);
}

TEST_F(ServiceTest, AConnectionToAcceptBumpsThePageEvents) {
  const auto before = page_of(bob).events.load();
  connect();
  EXPECT_GT(page_of(bob).events.load(), before);
}

TEST_F(ServiceTest, AListenerIsRestockedAsConnectionsAreAccepted) {
  alice_endpoint = open(alice);
  bob_endpoint = open(bob);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, bob_endpoint), 0);
  for (std::uint32_t i = 0; i < 3 * limits::kBacklog; ++i) {
    ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, alice_endpoint), 0);
    ASSERT_EQ(accept_soon(bob, bob_endpoint), 0) << i;
  }
  EXPECT_EQ(service.drive()->node().counters().get(Counter::kBacklogFull), 0U);
}

TEST_F(ServiceTest, AListenerHoldsAsManyUnacceptedConnectionsAsItsBacklog) {
  alice_endpoint = open(alice);
  bob_endpoint = open(bob);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, bob_endpoint), 0);
  for (std::uint32_t i = 0; i <= limits::kBacklog; ++i)
    ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, alice_endpoint), 0);
  turn();
  // Once, or more often when its sender has asked again meanwhile.
  EXPECT_GE(service.drive()->node().counters().get(Counter::kBacklogFull), 1U);
  std::uint32_t accepted = 0;
  while (on_endpoint(bob, ipc::RequestKind::kAccept, bob_endpoint) == 0) ++accepted;
  EXPECT_EQ(accepted, limits::kBacklog);
  // With those accepted there is room again, at once.
  const auto before = service.drive()->node().counters().get(Counter::kBacklogFull);
  ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, alice_endpoint), 0);
  turn();
  EXPECT_EQ(on_endpoint(bob, ipc::RequestKind::kAccept, bob_endpoint), 0);
  EXPECT_EQ(service.drive()->node().counters().get(Counter::kBacklogFull), before);
}

TEST_F(ServiceTest, ChannelsOfConnectionsThatFailUnacceptedServeTheNextOnes) {
  alice_endpoint = open(alice);
  bob_endpoint = open(bob);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, bob_endpoint), 0);
  std::vector<End> failing;
  for (std::uint32_t i = 0; i < limits::kBacklog; ++i) {
    ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, alice_endpoint), 0);
    failing.push_back(take_end());
  }
  turn();
  for (auto& end : failing) ASSERT_TRUE(send_nop(alice, end, 1));
  turn();
  port->cut = true;
  for (int i = 0; i < 20; ++i, port->ahead += 5 * kSecond) turn(1);
  EXPECT_EQ(on_endpoint(bob, ipc::RequestKind::kAccept, bob_endpoint), -EAGAIN);
  for (const auto& end : failing) EXPECT_EQ(on_vc(alice, ipc::RequestKind::kClose, end.vc), 0);
  port->cut = false;
  for (std::uint32_t i = 0; i < limits::kBacklog; ++i) {
    ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, alice_endpoint), 0);
    alice_end = take_end();
  }
  turn();
  for (std::uint32_t i = 0; i < limits::kBacklog; ++i) {
    ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kAccept, bob_endpoint), 0) << i;
    bob_end = take_end();
    EXPECT_EQ(bob_end.channel.state(), ChannelState::kOpen);
    EXPECT_FALSE(bob_end.channel.readable());
  }
  ASSERT_TRUE(send_nop(alice, alice_end, 4711));
  turn();
  ReceivedEntry entry;
  EXPECT_TRUE(bob_end.channel.receive(entry));
}

TEST_F(ServiceTest, BellNumbersAreUniqueAmongLiveConnections) {
  alice_endpoint = open(alice);
  ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kListen, alice_endpoint), 0);
  std::vector<bool> seen(1'000);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, alice_endpoint), 0);
    ASSERT_FALSE(seen.at(reply.channel));
    seen[reply.channel] = true;
    ASSERT_EQ(accept_soon(alice, alice_endpoint), 0);
    ASSERT_FALSE(seen.at(reply.channel));
    seen[reply.channel] = true;
  }
}

TEST_F(ServiceTest, NobodyReachesWhatBelongsToAnother) {
  connect();
  std::vector<std::byte> memory(kBuffer);
  ASSERT_EQ(map(bob, bob_endpoint, Direction::kReceive, memory), 0);
  const auto region = reply.region;
  for (const auto kind :
       {ipc::RequestKind::kConfigure, ipc::RequestKind::kEndpointConfig,
        ipc::RequestKind::kCloseEndpoint, ipc::RequestKind::kListen, ipc::RequestKind::kAccept,
        ipc::RequestKind::kConnect, ipc::RequestKind::kFreeMx, ipc::RequestKind::kBacklog})
    EXPECT_EQ(on_endpoint(alice, kind, bob_endpoint), -EBADF) << static_cast<int>(kind);
  EXPECT_EQ(map(alice, bob_endpoint, Direction::kReceive, memory), -EBADF);
  EXPECT_EQ(on_vc(alice, ipc::RequestKind::kVcInfo, bob_end.vc), -EBADF);
  EXPECT_EQ(on_vc(alice, ipc::RequestKind::kClose, bob_end.vc), -EBADF);
  EXPECT_EQ(on_vc(alice, ipc::RequestKind::kDecide, bob_end.vc), -EBADF);
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kUnmap, region), -EBADF);
  EXPECT_EQ(on_region(alice, ipc::RequestKind::kAllocMx, region), -EBADF);
  // Nor does a region of one's own go on another's connection.
  EXPECT_EQ(on_region(bob, ipc::RequestKind::kAllocMx, region, alice_end.vc), -EBADF);
  EXPECT_EQ(on_region(bob, ipc::RequestKind::kAllocMx, region, bob_end.vc), 0);
}

TEST_F(ServiceTest, OptionPayloadIsWholeOrNotThere) {
  connect();
  auto request = request_for(ipc::RequestKind::kDecide);
  request.vc = bob_end.vc;
  for (std::uint32_t const length : {1U, 31U, 33U, ~0U}) {
    request.option.length = length;
    EXPECT_EQ(ask(bob, request), -EINVAL) << length;
  }
  request.option.length = wire::kOptionSize;
  EXPECT_EQ(ask(bob, request), -EISCONN) << "nobody has to decide on this one";
}

TEST_F(ServiceTest, OnlyThePrivilegedChooseKeys) {
  auto request = request_for(ipc::RequestKind::kOpenEndpoint);
  request.config = usual_config();
  request.config.key = 0x1234;
  EXPECT_EQ(ask(alice, request), -EPERM);
  const auto root = service.drive()->add_client(true);
  EXPECT_EQ(ask(root, request), 0);
  EXPECT_EQ(reply.config.key, 0x1234U);
  request.kind = ipc::RequestKind::kConfigure;
  request.endpoint = open(alice);
  EXPECT_EQ(ask(alice, request), -EPERM);
}

TEST_F(ServiceTest, ConfigurationsThatFitNowhereAreRefused) {
  const auto refused = [this](auto&& change) {
    auto request = request_for(ipc::RequestKind::kOpenEndpoint);
    request.config = usual_config();
    change(request.config);
    return ask(alice, request) == -EINVAL;
  };
  EXPECT_TRUE(refused([](ipc::WireConfig& c) { c.port = 65'536; }));
  EXPECT_TRUE(refused([](ipc::WireConfig& c) { c.connectionless = 2; }));
  EXPECT_TRUE(refused([](ipc::WireConfig& c) { c.slots = 0; }));
  EXPECT_TRUE(refused([](ipc::WireConfig& c) { c.slots = kMaxSlots + 1; }));
  EXPECT_TRUE(refused([](ipc::WireConfig& c) { c.credits = 0; }));
  EXPECT_TRUE(refused([](ipc::WireConfig& c) { c.credits = ~0U; }));
  EXPECT_TRUE(refused([](ipc::WireConfig& c) { c.bufsize = 200; }));
}

TEST_F(ServiceTest, AListenersChannelsKeepTheirSize) {
  const auto endpoint = open(bob);
  EXPECT_EQ(on_endpoint(bob, ipc::RequestKind::kConfigure, endpoint), 0);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, endpoint), 0);
  EXPECT_EQ(on_endpoint(bob, ipc::RequestKind::kConfigure, endpoint), -EBUSY);
}

TEST_F(ServiceTest, ClosingIsSeenByBothSidesAndFreesTheConnection) {
  connect();
  ASSERT_EQ(on_vc(alice, ipc::RequestKind::kClose, alice_end.vc), 0);
  turn();
  EXPECT_EQ(alice_end.channel.state(), ChannelState::kClosed);
  EXPECT_EQ(bob_end.channel.state(), ChannelState::kPeerClosed);
  EXPECT_EQ(on_vc(alice, ipc::RequestKind::kVcInfo, alice_end.vc), -EBADF);
  ASSERT_EQ(on_vc(bob, ipc::RequestKind::kClose, bob_end.vc), 0);
  turn();
  EXPECT_EQ(bob_end.channel.state(), ChannelState::kClosed);
  EXPECT_EQ(service.drive()->node().vc_count(), 0U);
}

TEST_F(ServiceTest, AnEndpointInUseIsBusy) {
  connect();
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kCloseEndpoint, alice_endpoint), -EBUSY);
  ASSERT_EQ(on_vc(alice, ipc::RequestKind::kClose, alice_end.vc), 0);
  std::vector<std::byte> memory(kBuffer);
  ASSERT_EQ(map(alice, alice_endpoint, Direction::kTransmit, memory), 0);
  const auto region = reply.region;
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kCloseEndpoint, alice_endpoint), -EBUSY);
  ASSERT_EQ(on_region(alice, ipc::RequestKind::kUnmap, region), 0);
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kCloseEndpoint, alice_endpoint), 0);
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kCloseEndpoint, alice_endpoint), -EBADF);
}

TEST_F(ServiceTest, AClosedListenerRefusesAtOnce) {
  bob_endpoint = open(bob);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, bob_endpoint), 0);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kCloseEndpoint, bob_endpoint), 0);
  alice_endpoint = open(alice);
  ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, alice_endpoint), 0);
  const auto end = take_end();
  turn();
  EXPECT_EQ(end.channel.state(), ChannelState::kFailed);
  EXPECT_EQ(end.channel.error(), -ECONNREFUSED);
  // The UPort is free for the next listener.
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kListen, alice_endpoint), 0);
}

TEST_F(ServiceTest, ConnectingNeedsAStationsAddress) {
  auto request = request_for(ipc::RequestKind::kConnect);
  request.endpoint = open(alice);
  for (std::uint64_t const mac :
       {0x000000000000ULL, 0xffffffffffffULL, 0x010000000001ULL, 0x1020000000001ULL}) {
    request.mac = mac;
    EXPECT_EQ(ask(alice, request), -EINVAL) << mac;
  }
}

TEST_F(ServiceTest, NamesResolveToTheLinksOwnAddressOrByAsking) {
  auto request = request_for(ipc::RequestKind::kResolve);
  for (std::uint32_t const own : {0x0a090001U, 0x7f000001U, 0x7f010203U}) {
    request.ipv4 = own;
    ASSERT_EQ(ask(alice, request), 0);
    EXPECT_EQ(reply.mac, port->info().mac.to_u64());
  }
  request.ipv4 = 0x0a090002;
  EXPECT_EQ(ask(alice, request), -EAGAIN);
  port->neighbour = MacAddr{{2, 0, 0, 0, 0, 9}};
  ASSERT_EQ(ask(alice, request), 0);
  EXPECT_EQ(reply.mac, 0x020000000009U);
}

// Who opens many connections asks for one address each time.
TEST_F(ServiceTest, OverUdpAddressesThatAreNewCountMoreAgainstTheirRate) {
  port->becomes_internet();
  port->neighbour = MacAddr{{2, 0, 0, 0, 0, 9}};
  auto request = request_for(ipc::RequestKind::kResolve);
  request.ipv4 = 0x0a090002;
  const auto given_to = [&](auto& client) {
    unsigned given = 0;
    while (given < 10'000 && ask(client, request) == 0) ++given;
    return given;
  };
  const auto known = given_to(alice);
  EXPECT_GE(known, 160U);
  EXPECT_LT(known, 10'000U);
  EXPECT_EQ(reply.result, -EAGAIN);
  port->new_neighbour = true;
  EXPECT_LT(given_to(bob), 100U) << "the rate is that of each program";
  EXPECT_EQ(reply.result, -EAGAIN);
}

TEST_F(ServiceTest, TheNameOfAnInterfaceIsLookedUpWhereTheServiceRuns) {
  auto request = request_for(ipc::RequestKind::kResolve);
  request.ip[0] = 0xfe;
  request.ip[1] = 0x80;
  request.ip[15] = 1;
  ipc::set_text(request.zone, "no-such-one");
  EXPECT_EQ(ask(alice, request), -ENODEV);
  ipc::set_text(request.zone, "lo");
  EXPECT_EQ(ask(alice, request), -EAGAIN) << "a link of Ethernet knows no such address";
  std::fill(std::begin(request.zone), std::end(request.zone), 'x');
  EXPECT_EQ(ask(alice, request), -ENODEV) << "text without an end";
}

// For a name that it does not know the kernel looks for a module, if root asks, and for one that is
// long or has a colon it takes the lock of all interfaces, which any user can hold.
TEST_F(ServiceTest, TheKernelIsAskedAboutNoNameThatAProgramMakesUp) {
  auto request = request_for(ipc::RequestKind::kResolve);
  request.ip[0] = 0xfe;
  request.ip[1] = 0x80;
  for (const char* const zone : {"made-up", "made:up", "made-up-for-this-test-only"}) {
    ipc::set_text(request.zone, zone);
    EXPECT_EQ(ask(alice, request), -ENODEV) << zone;
    const std::lock_guard lock(asked_mutex);
    EXPECT_FALSE(asked_names.contains(zone));
  }
}

TEST_F(ServiceTest, StatsNameEveryCounterOfTheNodeAndTheLink) {
  auto request = request_for(ipc::RequestKind::kStats);
  std::vector<std::string> names;
  while (ask(alice, request) == 0) {
    names.emplace_back(reply.text);
    ++request.index;
  }
  EXPECT_EQ(reply.result, -ENOENT);
  ASSERT_EQ(names.size(), kCounterCount + 2);
  EXPECT_EQ(names.front(), "rx_frames");
  EXPECT_EQ(names[kCounterCount], "test_frames") << "the link's";
  EXPECT_EQ(names.back(), "link_changes");
}

TEST_F(ServiceTest, SleepIsRefusedWhileABellRings) {
  connect();
  EXPECT_TRUE(service.drive()->prepare_to_sleep());
  EXPECT_EQ(page_of(alice).service_asleep.load(), 1U);
  service.drive()->woke_up();
  EXPECT_EQ(page_of(alice).service_asleep.load(), 0U);
  ASSERT_TRUE(send_nop(alice, alice_end, 1));
  EXPECT_FALSE(service.drive()->prepare_to_sleep());
  EXPECT_EQ(page_of(alice).service_asleep.load(), 0U);
}

void wait_until_wanted(const DriveLock& lock) {
  while (!lock.wanted()) std::this_thread::yield();
}

TEST(Turn, IsHadByOneAtATime) {
  Service service(std::make_unique<test::TestPort>());
  {
    auto turn = service.drive();
    EXPECT_FALSE(service.try_drive());
    turn.pause([&] { EXPECT_TRUE(service.try_drive()); });
    EXPECT_FALSE(service.try_drive());
    turn.give_way();
    EXPECT_FALSE(service.try_drive());
  }
  EXPECT_TRUE(service.try_drive());
  EXPECT_TRUE(service.try_drive());
}

TEST(DriveLock, KeepsOthersOut) {
  DriveLock lock;
  unsigned together = 0, most = 0, turns = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) {
        std::lock_guard guard(lock);
        most = std::max(most, ++together);
        ++turns;
        --together;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(most, 1U);
  EXPECT_EQ(turns, 8'000U);
}

TEST(DriveLock, TriesWithoutWaiting) {
  DriveLock lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  EXPECT_FALSE(lock.wanted());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(DriveLock, OneWhoWaitsIsSeenAndComesNext) {
  DriveLock lock;
  lock.lock();
  std::vector<int> order;
  std::thread other([&] {
    std::lock_guard guard(lock);
    order.push_back(1);
  });
  wait_until_wanted(lock);
  // The poller unlocks and locks again: the one who waited goes first, every time.
  lock.unlock();
  lock.lock();
  order.push_back(2);
  EXPECT_FALSE(lock.wanted());
  lock.unlock();
  other.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(DriveLock, NobodyJumpsTheQueueByTrying) {
  DriveLock lock;
  lock.lock();
  std::atomic<bool> tried{false};
  std::thread other([&] {
    std::lock_guard guard(lock);
    while (!tried) std::this_thread::yield();
  });
  wait_until_wanted(lock);
  // From here on it is the other's, whether it has woken up yet or not.
  lock.unlock();
  EXPECT_FALSE(lock.try_lock());
  tried = true;
  other.join();
}

}  // namespace
}  // namespace stp::host
