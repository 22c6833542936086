// SPDX-License-Identifier: BSD-3-Clause
// A bell is shared with its client, who does with it what can be done with a descriptor.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <thread>

#include "libst/service/bell_credit.h"
#include "tests/service/served_pair.h"

namespace stp::service {
namespace {

class Bells : public testing::Test {
 protected:
  ClientPage& page_of(const Side& side) {
    return *reinterpret_cast<ClientPage*>(side.page->data());
  }
  // As an honest client sees it.
  bool falls_asleep() {
    return eventually([&] { return page_of(*pair.bob).service_asleep.load() != 0; });
  }
  bool heartbeats_go_on() {
    const auto polls = pair.loop.heartbeat().beats(), requests = pair.server.heartbeat().beats();
    return eventually([&] {
      pair.alice->client.ask(RequestKind::kHello);
      return pair.loop.heartbeat().beats() != polls && pair.server.heartbeat().beats() != requests;
    });
  }
  std::uint64_t silenced() {
    std::lock_guard guard(pair.service.lock());
    return pair.service.silenced_bells();
  }

  ServedPair pair;
};

TEST_F(Bells, EachClientHasOneOfItsOwn) {
  Side hostile(pair.path);
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
  Side hostile(pair.path);
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

TEST_F(Bells, OneThatAlwaysRingsIsNotListenedTo) {
  Side hostile(pair.path);
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
  Side hostile(pair.path);
  std::memset(static_cast<void*>(&page_of(hostile).bells), 0xff, sizeof(Doorbells));
  EXPECT_TRUE(falls_asleep());
  EXPECT_TRUE(pair.talks(1));
}

// A channel of its own, a bit that never goes away, and nothing new in the queue.
TEST_F(Bells, RingingForTheSameAgainAndAgainKeepsNobodyAwake) {
  Side hostile(pair.path);
  ASSERT_EQ(hostile.client.ask(RequestKind::kConnect, hostile.endpoint), 0);
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

}  // namespace
}  // namespace stp::service
