// SPDX-License-Identifier: BSD-3-Clause
// A bell is shared with its client, who does with it what can be done with a descriptor.

#include "libst/host/bells.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "libst/host/client.h"
#include "tests/host/service_fixture.h"
#include "tests/stpd/served_pair.h"

namespace stp::host {
namespace {

class Bells : public testing::Test {
 protected:
  ipc::ClientPage& page_of(const stpd::Side& side) {
    return *reinterpret_cast<ipc::ClientPage*>(side.page->data());
  }
  // As an honest client sees it.
  bool falls_asleep() {
    return eventually([&] { return page_of(*pair.bob).service_asleep.load() != 0; });
  }
  bool heartbeats_go_on() {
    const auto polls = pair.loop.heartbeat().beats(), requests = pair.server.heartbeat().beats();
    return eventually([&] {
      pair.alice->client.ask(ipc::RequestKind::kHello);
      return pair.loop.heartbeat().beats() != polls && pair.server.heartbeat().beats() != requests;
    });
  }
  std::uint64_t silenced() { return pair.service.silenced_bells(); }

  stpd::ServedPair pair;
};

TEST_F(Bells, EachClientHasOneOfItsOwn) {
  stpd::Side hostile(pair.path);
  ASSERT_EQ(::eventfd_write(hostile.bell.get(), 1), 0);
  for (const auto* const other : {&*pair.alice, &*pair.bob}) {
    eventfd_t count = 0;
    ASSERT_EQ(::fcntl(other->bell.get(), F_SETFL, O_NONBLOCK), 0);
    while (::eventfd_read(other->bell.get(), &count) == 0) {
    }
    ASSERT_EQ(::eventfd_write(hostile.bell.get(), 1), 0);
    pollfd look{.fd = other->bell.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&look, 1, 0), 0);
  }
}

TEST_F(Bells, NoFlagAndNoValueOfOneHoldsUpTheDaemon) {
  stpd::Side hostile(pair.path);
  const auto bell = hostile.bell.get();
  const auto full = std::numeric_limits<std::uint64_t>::max() - 1;
  for (const auto flags : {0, O_NONBLOCK, O_ASYNC | O_NONBLOCK, O_APPEND}) {
    ::fcntl(bell, F_SETFL, O_NONBLOCK);
    eventfd_t count = 0;
    ::eventfd_read(bell, &count);  // empty
    ::fcntl(bell, F_SETFL, flags);
    hostile.ring();
    EXPECT_TRUE(pair.talks(1)) << flags;
    ::fcntl(bell, F_SETFL, O_NONBLOCK);
    ::eventfd_read(bell, &count);
    EXPECT_EQ(::eventfd_write(bell, full), 0);  // full: a write of one would wait
    ::fcntl(bell, F_SETFL, flags);
    EXPECT_TRUE(pair.talks(3)) << flags;
    EXPECT_TRUE(falls_asleep());
  }
  EXPECT_TRUE(heartbeats_go_on());
}

// To take one out of an epoll would wait for each write that wakes all who watch it.
TEST(BellsOfClients, StayInTheirEpollUntilAllAreClosedElsewhere) {
  Allowances allow{nullptr, 0, 1};
  ClientTable clients{allow};
  port::TurnClock clock;
  ::stp::host::Bells bells{clients, clock};
  std::vector<os::UniqueFd> closed;
  bells.close_by([&](uid_t, os::UniqueFd file) { closed.push_back(std::move(file)); });
  for (const bool asleep : {false, true}) {
    std::array<Client*, 2> two{clients.add(false), clients.add(false)};
    int bell = -1;
    for (auto* const client : two) ASSERT_EQ(bells.of(*client, allow, bell), 0);
    if (asleep) {
      ASSERT_TRUE(bells.fall_asleep());
    }
    bells.remove(*two[0]);
    EXPECT_TRUE(closed.empty()) << "the other one is in that epoll";
    bells.remove(*two[1]);
    if (asleep) {
      EXPECT_TRUE(closed.empty()) << "another file would get the number that the sleeper looks at";
      bells.wake_up();
    }
    ASSERT_EQ(closed.size(), 3U);
    for (const auto at : {1U, 2U}) {
      epoll_event event{};
      EXPECT_EQ(::epoll_ctl(closed[0].get(), EPOLL_CTL_ADD, closed[at].get(), &event), -1);
      EXPECT_EQ(errno, EEXIST);
    }
    closed.clear();
  }
}

// The kernel adds one for each read of a program that asks for it, beyond what a write may. It has
// when io_submit() returns: this reads memory.
bool overflow(int bell) {
  const os::UniqueFd file(::memfd_create("read", MFD_CLOEXEC));
  aio_context_t context = 0;
  if (::syscall(SYS_io_setup, 1, &context) != 0) return false;
  char none = 0;
  iocb read{};
  read.aio_lio_opcode = IOCB_CMD_PREAD;
  read.aio_fildes = static_cast<std::uint32_t>(file.get());
  read.aio_buf = reinterpret_cast<std::uintptr_t>(&none);
  read.aio_nbytes = 1;
  read.aio_flags = IOCB_FLAG_RESFD;
  read.aio_resfd = static_cast<std::uint32_t>(bell);
  std::array<iocb*, 1> reads{&read};
  const auto submitted = ::syscall(SYS_io_submit, context, 1, reads.data());
  // The context goes with the process: to end it takes long.
  pollfd look{.fd = bell, .events = 0, .revents = 0};
  return submitted == 1 && ::poll(&look, 1, 0) == 1 && look.revents == POLLERR;
}

// Epoll tells of an error whether or not it is asked for.
TEST(BellsOfClients, ThatAreNotHeardKeepNobodyAwakeHoweverFull) {
  Allowances allow{nullptr, 0, 1};
  ClientTable clients{allow};
  port::TurnClock clock;
  ::stp::host::Bells bells{clients, clock};
  std::array<Client*, 2> two{clients.add(false), clients.add(false)};
  int bell = -1, full = -1;
  ASSERT_EQ(bells.of(*two[1], allow, bell), 0);
  ASSERT_EQ(bells.of(*two[0], allow, full), 0);
  ASSERT_EQ(::eventfd_write(full, std::numeric_limits<std::uint64_t>::max() - 1), 0);
  if (!overflow(full)) GTEST_SKIP() << "the kernel adds nothing to it here";
  bells.remove(*two[0]);
  Time last = 0;
  for (int i = 0; i < 2; ++i) {  // the first one may be told of what came before
    ASSERT_TRUE(bells.fall_asleep());
    const auto begin = port::now();
    bells.sleep(-1, kMillisecond);
    last = port::now() - begin;
    bells.wake_up();
  }
  EXPECT_GE(last, kMillisecond / 2);
}

// A thread that sleeps looks at each epoll, so there are few.
TEST(BellsOfClients, OfAUserShareEpolls) {
  Allowances allow{nullptr, 0, 1};
  ClientTable clients{allow};
  port::TurnClock clock;
  ::stp::host::Bells bells{clients, clock};
  const auto groups = [&](uid_t user, std::size_t count) {
    std::set<const BellGroup*> found;
    int bell = -1;
    for (std::size_t i = 0; i < count; ++i) {
      auto& client = *clients.add(false);
      client.identity.uid = user;
      EXPECT_EQ(bells.of(client, allow, bell), 0);
      found.insert(client.bell_group);
    }
    return found;
  };
  const auto of_one = groups(1'000, 2 * BellGroup::kMost), of_another = groups(1'001, 1);
  EXPECT_EQ(of_one.size(), 2U);
  EXPECT_FALSE(of_one.contains(*of_another.begin()));
}

TEST(BellsOfClients, EachEndsASleep) {
  Allowances allow{nullptr, 0, 1};
  ClientTable clients{allow};
  port::TurnClock clock;
  ::stp::host::Bells bells{clients, clock};
  for (std::size_t i = 0; i <= BellGroup::kMost; ++i) {
    int bell = -1;
    ASSERT_EQ(bells.of(*clients.add(false), allow, bell), 0);
    ASSERT_TRUE(bells.fall_asleep());
    ASSERT_EQ(::eventfd_write(bell, 1), 0);
    const auto begin = port::now();
    bells.sleep(-1, 10 * kSecond);
    EXPECT_LT(port::now() - begin, 5 * kSecond);
    bells.wake_up();
  }
}

TEST_F(Bells, OneThatAlwaysRingsIsNotListenedTo) {
  stpd::Side hostile(pair.path);
  std::atomic<bool> done{false};
  std::thread ringing([&] {
    while (!done) ::eventfd_write(hostile.bell.get(), 1);
  });
  EXPECT_TRUE(eventually([&] { return silenced() >= 2; }));
  EXPECT_TRUE(pair.talks(1));
  EXPECT_TRUE(falls_asleep());
  done = true;
  ringing.join();
}

TEST_F(Bells, BitsThatStandForNothingKeepNobodyAwake) {
  stpd::Side hostile(pair.path);
  std::memset(static_cast<void*>(&page_of(hostile).bells), 0xff, sizeof(ipc::Doorbells));
  EXPECT_TRUE(falls_asleep());
  EXPECT_TRUE(pair.talks(1));
}

// A channel of its own, a bit that never goes away, and nothing new in the queue.
TEST_F(Bells, RingingForTheSameAgainAndAgainKeepsNobodyAwake) {
  stpd::Side hostile(pair.path);
  ASSERT_EQ(hostile.client.ask(ipc::RequestKind::kConnect, hostile.endpoint), 0);
  hostile.take_channel();
  std::atomic<bool> done{false};
  std::thread ringing([&] {
    while (!done) page_of(hostile).bells.ring(hostile.number);
  });
  EXPECT_TRUE(eventually([&] { return silenced() >= 1; }));
  EXPECT_TRUE(falls_asleep());
  EXPECT_TRUE(pair.talks(1));
  done = true;
  ringing.join();
}

TEST_F(Bells, WhoWasSilencedIsHeardAgain) {
  auto& hostile = *pair.alice;
  ASSERT_TRUE(eventually([&] {
    ::eventfd_write(hostile.bell.get(), 1);
    return silenced() >= 1;
  }));
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_TRUE(pair.talks(2 * i));
}

TEST(BellCredit, SilencesWhoRingsInVainForLongerEachTime) {
  BellCredit credit;
  for (unsigned i = 1; i < BellCredit::kMost; ++i) ASSERT_FALSE(credit.rang_in_vain(0)) << i;
  Time now = 0;
  for (const Time pause : {20, 40, 80, 160, 320, 320}) {
    while (!credit.rang_in_vain(now)) {
    }
    EXPECT_TRUE(credit.silent());
    EXPECT_EQ(credit.silent_until() - now, pause * kMillisecond);
    now = credit.silent_until();
    credit.listen_again();
    EXPECT_EQ(credit.silent_until(), kNever);
  }
  credit.rang_with_reason();
  while (!credit.rang_in_vain(now)) {
  }
  EXPECT_EQ(credit.silent_until() - now, BellCredit::kShortest);
}

TEST(BellCredit, ToleratesRingsThatOvertakeEachOther) {
  BellCredit credit;
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_FALSE(credit.rang_in_vain(0));
    ASSERT_FALSE(credit.rang_in_vain(0));
    credit.rang_with_reason();
  }
}

class WakesTest : public testing::Test {
 protected:
  Client& add() { return *clients.add(false); }
  static Bell add_channel(Client& client, bool gathered) {
    auto channel = channel_without_connection();
    channel->control().gathered.store(gathered ? 1U : 0U);
    return client.channels.add(std::move(channel));
  }
  static std::unique_ptr<Channel> channel_without_connection() {
    auto channel = std::make_unique<Channel>();
    channel->memory = ipc::SharedMemory::create_own(ChannelGeometry{}.size());
    return channel;
  }
  static std::uint32_t events_of(const Client& client) { return client.page().events; }

  Allowances allow{nullptr, 0, 1};
  ClientTable clients{allow};
  Wakes wakes{clients};
};

TEST_F(WakesTest, WhateverHappensInATurnTheWordOfThePageWakesOnce) {
  auto& client = add();
  const auto one = add_channel(client, true), two = add_channel(client, true);
  for (int i = 0; i < 3; ++i) {
    wakes.page(client);
    wakes.channel(client, one);
    wakes.channel(client, two);
  }
  EXPECT_FALSE(wakes.go_on());
  EXPECT_EQ(events_of(client), 1U);
  wakes.page(client);
  EXPECT_FALSE(wakes.go_on());
  EXPECT_EQ(events_of(client), 2U);
}

// Whose news a thread takes right after the turn, is not woken: who sleeps on that page does so for
// others.
TEST_F(WakesTest, NobodyIsWokenForChannelsWhoseUserDrivesTheLink) {
  constexpr std::uint32_t kDriver = 7, kOther = 8;
  auto& client = add();
  const auto of_driver = add_channel(client, true), of_other = add_channel(client, true);
  client.channels.at(of_driver)->control().gathered.store(kDriver);
  client.channels.at(of_other)->control().gathered.store(kOther);
  wakes.visit(kDriver);
  wakes.channel(client, of_driver);
  EXPECT_FALSE(wakes.go_on());
  EXPECT_EQ(events_of(client), 0U);
  wakes.visit(kDriver);
  wakes.channel(client, of_other);
  EXPECT_FALSE(wakes.go_on());
  EXPECT_EQ(events_of(client), 1U);
}

// A request is answered between two turns, and whose connection it ends may sleep.
TEST_F(WakesTest, WhoDroveTheLinkIsWokenAfterThatTurn) {
  constexpr std::uint32_t kDriver = 9;
  auto& client = add();
  const auto number = add_channel(client, true);
  client.channels.at(number)->control().gathered.store(kDriver);
  wakes.visit(kDriver);
  EXPECT_FALSE(wakes.go_on());
  wakes.channel(client, number);
  EXPECT_FALSE(wakes.go_on());
  EXPECT_EQ(events_of(client), 1U);
}

// With no time at all it wakes one thread each time.
TEST_F(WakesTest, OneWithManyChannelsIsNotWokenBeforeTheOthers) {
  auto& many = add();
  auto& few = add();
  for (int i = 0; i < 3; ++i) {
    const auto number = add_channel(many, false);
    wakes.channel(many, number);
    wakes.channel(many, number);
  }
  wakes.page(few);
  EXPECT_TRUE(wakes.go_on(0));
  EXPECT_TRUE(wakes.go_on(0));
  EXPECT_EQ(events_of(few), 1U);
  EXPECT_TRUE(wakes.go_on(0));
  EXPECT_FALSE(wakes.go_on(0));
  EXPECT_EQ(events_of(many), 0U);
}

TEST_F(WakesTest, WhatHasGoneIsPassedOver) {
  auto& client = add();
  const auto number = add_channel(client, false);
  wakes.channel(client, number);
  client.channels.remove(number);
  EXPECT_EQ(add_channel(client, true), number);
  wakes.channel(client, number + 1);
  auto& gone = add();
  wakes.page(gone);
  gone.leaving = true;
  clients.forget_if_empty(gone);
  EXPECT_FALSE(wakes.go_on());
  EXPECT_EQ(events_of(client), 0U);
}

TEST_F(WakesTest, ChannelsOfConnectionsThatAreOverAreKeptUntilTheirTurn) {
  auto& many = add();
  auto& few = add();
  std::vector<std::weak_ptr<ipc::SharedMemory>> kept;
  for (int i = 0; i < 3; ++i) {
    auto channel = channel_without_connection();
    kept.push_back(channel->memory.shared());
    wakes.over(many, std::move(channel));
  }
  wakes.page(few);
  const auto left = [&] {
    return std::count_if(kept.begin(), kept.end(), [](const auto& one) { return !one.expired(); });
  };
  EXPECT_EQ(left(), 3);
  EXPECT_TRUE(wakes.go_on(0));
  EXPECT_EQ(left(), 2);
  EXPECT_TRUE(wakes.go_on(0));
  EXPECT_EQ(events_of(few), 1U);
  EXPECT_TRUE(wakes.go_on(0));
  EXPECT_FALSE(wakes.go_on(0));
  EXPECT_EQ(left(), 0);
}

TEST_F(WakesTest, AClientThatHasLeftStaysUntilItsThreadsAreWoken) {
  auto& client = add();
  const auto id = client.id;
  wakes.over(client, channel_without_connection());
  client.leaving = true;
  clients.forget_if_empty(client);
  ASSERT_NE(clients.find(id), nullptr);
  EXPECT_FALSE(wakes.go_on());
  EXPECT_EQ(clients.find(id), nullptr);
}

using WakesOfAService = ServiceFixture;

TEST_F(WakesOfAService, ATurnWakesAClientOnceHoweverManyConnectionsItGets) {
  constexpr std::uint32_t kConnections = 6;
  const auto listener = open(bob);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, listener), 0);
  auto& page = page_of(bob);
  for (std::uint32_t i = 0; i < kConnections; ++i)
    ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, open(alice)), 0);
  for (int i = 0; i < 10; ++i) {
    const auto before = page.events.load();
    turn(1);
    EXPECT_LE(page.events.load() - before, 1U);
  }
  EXPECT_EQ(page.accepts.load(), kConnections);
  EXPECT_GT(page.events.load(), 0U);
}

TEST_F(WakesOfAService, ATurnWakesAClientOnceHoweverManyConnectionsEnd) {
  constexpr int kConnections = 6;
  const auto listener = open(bob);
  ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, listener), 0);
  std::vector<End> ends;
  for (int i = 0; i < kConnections; ++i) {
    ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, open(alice)), 0);
    ASSERT_EQ(accept_soon(bob, listener), 0);
    ends.push_back(take_end());
    reinterpret_cast<ChannelControl*>(ends.back().memory->data())->gathered.store(1);
  }
  for (const auto& end : ends) EXPECT_EQ(on_vc(bob, ipc::RequestKind::kClose, end.vc), 0);
  auto& page = page_of(bob);
  const auto at_first = page.events.load();
  for (int i = 0; i < 10; ++i) {
    const auto before = page.events.load();
    turn(1);
    EXPECT_LE(page.events.load() - before, 1U);
  }
  for (const auto& end : ends) EXPECT_EQ(end.channel.state(), ChannelState::kClosed);
  EXPECT_GT(page.events.load(), at_first);
}

}  // namespace
}  // namespace stp::host
