// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/poll_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "libst/os/unique_fd.h"
#include "tests/host/eventually.h"
#include "tests/host/service_fixture.h"
#include "tests/stpd/served_socket.h"

namespace stp::host {
namespace {

class PollLoopTest : public ServiceFixture, public testing::WithParamInterface<PollPolicy> {
 protected:
  // Generous: only a loop that does not run fails it.
  bool nop_arrives(std::uint32_t value) {
    SendEntry entry{};
    entry.header.op_flags = wire::op_flags(wire::Op::kNoOperation);
    entry.header.sync = value;
    if (!alice_end.channel.send(entry)) return false;
    page->bells.ring(alice_end.bell);
    if (page->service_asleep.load() != 0) {
      std::uint64_t const one = 1;
      if (::write(service.bell(), &one, sizeof one) != sizeof one) return false;
    }
    ReceivedEntry received;
    return eventually([&] { return bob_end.channel.receive(received); }) &&
           received.header.sync == value;
  }
  void SetUp() override {
    connect();
    page = &page_of(alice);
  }
  ipc::ClientPage* page = nullptr;
};

TEST_P(PollLoopTest, ServesClientsWithoutAnyCall) {
  PollLoop loop(service, GetParam());
  loop.start();
  for (std::uint32_t i = 0; i < 50; ++i) ASSERT_TRUE(nop_arrives(i));
}

TEST_P(PollLoopTest, WakesFromSleepForABell) {
  PollLoop loop(service, GetParam());
  loop.start();
  for (std::uint32_t i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(nop_arrives(i));
  }
}

TEST_P(PollLoopTest, LetsRequestsIn) {
  PollLoop loop(service, GetParam());
  loop.start();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ask(alice, ipc::RequestKind::kHello), 0);
}

TEST_P(PollLoopTest, StaysAwayWhileACallerDrives) {
  PollLoop loop(service, GetParam());
  loop.start();
  // Once it has seen the caller it asks for the lock no more.
  ASSERT_TRUE(eventually([&] {
    const auto turn = service.drive();
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
    while (std::chrono::steady_clock::now() < until) loop.visited();
    return !service.is_wanted();
  }));
}

TEST_P(PollLoopTest, TakesOverWhenTheLastCallerHasGone) {
  PollLoop loop(service, GetParam());
  loop.start();
  for (std::uint32_t i = 0; i < 20; ++i) {
    {
      const auto turn = service.drive();
      loop.visited();
      turn->poll();
    }
    if (i % 2 != 0) loop.take_over();
    ASSERT_TRUE(nop_arrives(i));
  }
}

// Whether an epoll of this process has that file.
bool is_in_an_epoll(int fd) {
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream lines(file.path());
    std::string word;
    int number = -1;
    while (lines >> word)
      if (word == "tfd:" && lines >> number && number == fd) return true;
  }
  return false;
}

// To add an epoll to another one takes a mutex of the kernel that any user can hold.
TEST_P(PollLoopTest, TheLinksEpollEndsItsSleepsAndIsInNoOther) {
  const os::UniqueFd frames(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const os::UniqueFd of_link(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(of_link.get(), EPOLL_CTL_ADD, frames.get(), &event), 0);
  port->wakes_by = of_link.get();
  PollLoop loop(service, GetParam());
  loop.start();
  ASSERT_TRUE(GetParam() == PollPolicy::kBusy ||
              eventually([&] { return page->service_asleep.load() != 0; }));
  EXPECT_TRUE(is_in_an_epoll(frames.get()));
  EXPECT_FALSE(is_in_an_epoll(of_link.get()));
  ASSERT_EQ(::eventfd_write(frames.get(), 1), 0);
  const auto before = loop.heartbeat().beats();
  EXPECT_TRUE(eventually([&] { return loop.heartbeat().beats() - before > 2'000; }))
      << "a sleep lasts 100 ms";
}

// It waits for frames itself: the loop only looks whether it is still there.
TEST_P(PollLoopTest, StaysAwayWhileACallerSleepsOnTheLink) {
  const os::UniqueFd frames(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  port->wakes_by = frames.get();
  PollLoop loop(service, GetParam());
  loop.start();
  for (const auto& end_sleep : std::vector<std::function<void()>>{
           [&] { loop.rouse(); }, [&] { ::eventfd_write(frames.get(), 1); }}) {
    std::atomic<bool> over = false;
    std::atomic<unsigned> sleeps = 0;  // timers of the Node end some
    std::thread caller([&] {
      for (auto driving = service.drive();; driving.give_way()) {
        const auto rouses = loop.rouses();
        if (over) break;
        loop.visited();
        driving->poll();
        ++sleeps;
        loop.sleep_as_caller(driving, 60 * kSecond, rouses);
      }
    });
    // One that drives does not look around.
    EXPECT_TRUE(eventually([&] {
      const auto sleep = sleeps.load();
      const auto before = loop.looks();
      return sleep != 0 &&
             eventually([&] { return sleeps != sleep || loop.looks() - before >= 4; }) &&
             sleeps == sleep && page->service_asleep.load() != 0;
    }));
    over = true;
    end_sleep();
    caller.join();
  }
  EXPECT_TRUE(nop_arrives(0)) << "it is back";
}

TEST_P(PollLoopTest, ACallerThatNoFrameWakesLooksAgainSoon) {
  PollLoop loop(service, GetParam());
  auto driving = service.drive();
  EXPECT_TRUE(eventually([&] {
    driving->poll();
    const auto deadline = std::min(driving->next_deadline(), port::now() + 60 * kSecond);
    loop.sleep_as_caller(driving, 60 * kSecond, loop.rouses());
    return port::now() + kMillisecond < deadline;
  }));
}

TEST_P(PollLoopTest, ACallerThatIsRousedBeforeItSleepsLooksAgain) {
  const os::UniqueFd frames(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  port->wakes_by = frames.get();
  PollLoop loop(service, GetParam());
  auto driving = service.drive();
  EXPECT_TRUE(eventually([&] {
    driving->poll();
    const auto deadline = std::min(driving->next_deadline(), port::now() + 60 * kSecond);
    const auto rouses = loop.rouses();
    loop.rouse();
    loop.sleep_as_caller(driving, 60 * kSecond, rouses);
    return port::now() + kMillisecond < deadline;
  }));
}

// A program that looks at its memory alone answers without a call that looks.
TEST_P(PollLoopTest, PostsDoNotSendItAwayFromAProgramThatLeavesItsFramesToIt) {
  PollLoop loop(service, GetParam());
  loop.start();
  const auto post = [&] {
    const auto turn = service.drive();
    loop.posted();
  };
  ASSERT_TRUE(eventually([&] { return loop.looks() != 0; }));
  auto before = loop.looks();
  post();
  ASSERT_TRUE(eventually([&] { return loop.looks() - before >= 2; })) << "it was away";
  ASSERT_TRUE(nop_arrives(0));
  before = loop.looks();
  for (std::uint32_t i = 1; i < 100; ++i) {
    post();
    ASSERT_TRUE(nop_arrives(i));
    ASSERT_EQ(loop.looks(), before);
  }
  for (int i = 0; i < 2 * Attention::kMostPosts; ++i) post();
  ASSERT_TRUE(eventually([&] { return loop.looks() != before; })) << "a sender is let alone";
}

// Of 32 posts in a row one drives the link, and takes the answers with it: such a program makes no
// call that looks. The loop would fight with it for the lock.
TEST_P(PollLoopTest, LetsASenderAloneThatLeavesMostOfItsPostsToIt) {
  PollLoop loop(service, GetParam());
  loop.start();
  const auto post = [&](int left) {
    for (int i = 0; i < left; ++i) loop.leave_to_loop();
    const auto turn = service.drive();
    loop.posted();
  };
  ASSERT_TRUE(eventually([&] { return loop.looks() != 0; }));
  auto before = loop.looks();
  post(0);
  ASSERT_TRUE(eventually([&] { return loop.looks() - before >= 2; }));
  ASSERT_TRUE(nop_arrives(0));
  before = loop.looks();
  for (std::uint32_t i = 1; i < 100 && loop.looks() == before; ++i) {
    post(31);
    ASSERT_TRUE(nop_arrives(i));
  }
  EXPECT_NE(loop.looks(), before);
}

TEST_P(PollLoopTest, ACallThatLooksSendsItAway) {
  PollLoop loop(service, GetParam());
  loop.start();
  const auto visit = [&] {
    const auto turn = service.drive();
    loop.visited();
  };
  ASSERT_TRUE(eventually([&] { return loop.looks() != 0; }));
  auto before = loop.looks();
  visit();
  ASSERT_TRUE(eventually([&] { return loop.looks() - before >= 2; }));
  ASSERT_TRUE(nop_arrives(0));
  before = loop.looks();
  visit();
  ASSERT_TRUE(eventually([&] { return loop.looks() != before; }));
}

TEST_P(PollLoopTest, StopsAndStartsAgain) {
  PollLoop loop(service, GetParam());
  loop.stop();
  for (std::uint32_t i = 0; i < 3; ++i) {
    loop.start();
    ASSERT_TRUE(nop_arrives(i));
    loop.stop();
    loop.stop();
    EXPECT_TRUE(service.try_drive());
  }
}

TEST(SleepBudget, LooksAsOftenAsTwoPercentOfACoreAllow) {
  constexpr Time kShortest = 50 * kMicrosecond, kLongest = kMillisecond;
  SleepBudget looks(kShortest, kLongest);
  EXPECT_EQ(looks.pause(), kLongest) << "nothing is known yet";
  for (const Time cost : {1'000, 5'000, 10'000}) {
    looks.set_cost(cost);
    EXPECT_LE(100 * cost, 2 * looks.pause()) << "of " << cost << " ns";
    EXPECT_GE(100 * cost, looks.pause()) << "of " << cost << " ns";
  }
  looks.set_cost(1);
  EXPECT_EQ(looks.pause(), kShortest);
  looks.set_cost(kMillisecond);
  EXPECT_EQ(looks.pause(), kLongest);
}

TEST(SleepBudget, MeasuresWhatALookCosts) {
  SleepBudget looks(1, kSecond);
  for (int i = 0; i < 100; ++i) {
    const auto until = port::now() + 20 * kMicrosecond;
    while (port::now() < until) {
    }
    looks.looked();
  }
  EXPECT_LT(looks.pause(), kSecond);
  EXPECT_GT(looks.pause(), 10 * kMicrosecond);
}

TEST(Patience, IsLongWhileAnswersCome) {
  Patience patience;
  EXPECT_EQ(patience.time(kSecond), Patience::kShortest);
  patience.work_came(Patience::kShortest);
  EXPECT_EQ(patience.time(kSecond), Patience::kShortest) << "it was long enough";
  patience.work_came(Patience::kShortest + 1);
  EXPECT_EQ(patience.time(kSecond), Patience::kLongest);
  patience.work_came(1);
  EXPECT_EQ(patience.time(kSecond), Patience::kLongest) << "more of the same burst";
  patience.work_came(Patience::kAnswer);
  EXPECT_EQ(patience.time(kSecond), Patience::kLongest) << "a late one";
}

// Work that comes once in a while costs no more than a little polling each time.
TEST(Patience, IsShortWhereNothingComesSoon) {
  Patience patience;
  patience.work_came(Patience::kShortest + 1);
  for (int i = 0; i < 3; ++i) {
    patience.work_came(Patience::kAnswer + 1);
    EXPECT_EQ(patience.time(kSecond), Patience::kShortest);
    for (int of_burst = 0; of_burst < 10; ++of_burst) patience.work_came(kMicrosecond);
    EXPECT_EQ(patience.time(kSecond), Patience::kShortest);
  }
}

TEST(Patience, EndsForAWhileWhereTheCoreIsNotGivenBack) {
  Patience patience;
  patience.yielded(kSecond, kSecond + Patience::kGivenBackLate.late_back);
  EXPECT_EQ(patience.time(kSecond), Patience::kShortest) << "that was soon";
  const auto late = kSecond + Patience::kGivenBackLate.late_back + 1;
  patience.yielded(kSecond, late);
  EXPECT_EQ(patience.time(late), 0U);
  patience.work_came(Patience::kShortest + 1);
  EXPECT_EQ(patience.time(late + Patience::kGivenBackLate.holds - 1), 0U);
  EXPECT_EQ(patience.time(late + Patience::kGivenBackLate.holds), Patience::kLongest)
      << "perhaps no longer";
}

INSTANTIATE_TEST_SUITE_P(Policies, PollLoopTest,
                         testing::Values(PollPolicy::kBusy, PollPolicy::kAdaptive),
                         [](auto& policy) {
                           return policy.param == PollPolicy::kBusy ? "Busy" : "Adaptive";
                         });

TEST(Scheduling, AThreadThatAsksForShortSlicesHasThemAndItsNicenessStays) {
  std::optional<Scheduling> before, after;
  std::thread([&] {
    if (::setpriority(PRIO_PROCESS, 0, 5) != 0) return;  // this thread alone, as Linux has it
    before = scheduling();
    ask_for_short_slices(kShortSlice);
    after = scheduling();
  }).join();
  ASSERT_TRUE(before && after);
  if (before->slice == 0) GTEST_SKIP() << "this kernel knows no slices";
  EXPECT_EQ(after->slice, kShortSlice);
  EXPECT_EQ(after->policy, before->policy);
  EXPECT_EQ(after->nice, 5);
}

int threads_with_short_slices() {
  int count = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    if (const auto is = scheduling(std::stoi(thread.path().filename())); is)
      count += is->slice == kShortSlice || is->slice == kSliceToYield ? 1 : 0;
  return count;
}

// Whoever waits for a processor while it holds the lock of the link holds up the link.
TEST(Scheduling, TheThreadsOfADaemonThatHoldItsLockHaveShortSlices) {
  if (const auto own = scheduling(); !own || own->slice == 0)
    GTEST_SKIP() << "this kernel knows no slices";
  stpd::ServedSocket daemon;
  daemon.start();
  EXPECT_TRUE(eventually([] { return threads_with_short_slices() == 2; }));
}

using Cpus = std::vector<std::vector<unsigned>>;

TEST(PollPlaces, OneShardHasAllCpusThatWereChosen) {
  const auto places = poll_places(PollPolicy::kBusy, 1, {2, 3}, 8);
  EXPECT_EQ(places.cpus, (Cpus{{2, 3}}));
  EXPECT_EQ(places.policy, PollPolicy::kBusy);
  EXPECT_FALSE(places.crowded);
  EXPECT_EQ(places.note, "");
}

TEST(PollPlaces, EachOfSeveralHasACpuOfItsOwn) {
  const auto places = poll_places(PollPolicy::kBusy, 3, {2, 3, 6, 7}, 8);
  EXPECT_EQ(places.cpus, (Cpus{{2}, {3}, {6}}));
  EXPECT_EQ(places.policy, PollPolicy::kBusy);
  EXPECT_FALSE(places.crowded);
  EXPECT_EQ(places.note, "");
}

TEST(PollPlaces, WithFewerCpusTheyShareAndNobodyIsBusyForEver) {
  const auto places = poll_places(PollPolicy::kBusy, 3, {2, 3}, 8);
  EXPECT_EQ(places.cpus, (Cpus{{2}, {3}, {2}}));
  EXPECT_EQ(places.policy, PollPolicy::kAdaptive);
  EXPECT_TRUE(places.crowded);
  EXPECT_NE(places.note.find("3 shards share 2 CPUs"), std::string::npos) << places.note;
  EXPECT_NE(places.note.find("adaptive"), std::string::npos) << places.note;
}

TEST(PollPlaces, WithoutAChoiceTheyRunAnywhereAndTheMachineHasToHaveEnough) {
  EXPECT_EQ(poll_places(PollPolicy::kInterrupt, 2, {}, 2).cpus, (Cpus{{}, {}}));
  EXPECT_FALSE(poll_places(PollPolicy::kInterrupt, 2, {}, 2).crowded);
  const auto places = poll_places(PollPolicy::kInterrupt, 4, {}, 2);
  EXPECT_TRUE(places.crowded);
  EXPECT_EQ(places.policy, PollPolicy::kInterrupt);
  EXPECT_EQ(places.note.find("adaptive"), std::string::npos) << places.note;
}

// ---- when it is awake

using Rest = Attention::Rest;

constexpr Time kBegin = kSecond;
constexpr os::SharedCoreRule kShared{};

struct AttentionTest : testing::Test {
  AttentionTest() { attention.may_spin(true); }
  Attention attention;
};

TEST_F(AttentionTest, BeginsWithAFrame) {
  EXPECT_FALSE(attention.on());
  attention.turn(0, 0, kBegin);
  EXPECT_FALSE(attention.on());
  attention.turn(1, 0, kBegin);
  EXPECT_TRUE(attention.on());
}

TEST_F(AttentionTest, IsNotForProgramsThatSleepInACall) {
  attention.turn(1, 0, kBegin);
  attention.may_spin(false);
  EXPECT_FALSE(attention.on());
  attention.turn(1, 0, kBegin);
  EXPECT_FALSE(attention.on());
  EXPECT_FALSE(attention.possible());
}

TEST_F(AttentionTest, AFrameBuysABoundedTime) {
  attention.turn(1, 0, kBegin);
  EXPECT_EQ(attention.rest(kBegin), Rest::kYield);
  EXPECT_EQ(attention.rest(kBegin + Attention::kAwake - 1), Rest::kYield);
  EXPECT_EQ(attention.rest(kBegin + Attention::kAwake), Rest::kNap);
  EXPECT_EQ(attention.rest(kBegin + Attention::kNapping - 1), Rest::kNap);
  EXPECT_EQ(attention.rest(kBegin + Attention::kNapping), Rest::kSleep);
}

TEST_F(AttentionTest, AnAnswerProlongsIt) {
  attention.turn(1, 0, kBegin);
  attention.turn(0, 1, kBegin + Attention::kNapping);
  EXPECT_EQ(attention.rest(kBegin + Attention::kNapping), Rest::kYield);
}

TEST_F(AttentionTest, WhoSharesTheCoreNapsForAWhile) {
  attention.turn(1, 0, kBegin);
  attention.yielded(kBegin, kBegin + kShared.late_back);
  EXPECT_EQ(attention.rest(kBegin), Rest::kYield) << "that was soon";
  const auto late = kBegin + kShared.late_back + 1;
  attention.yielded(kBegin, late);
  EXPECT_EQ(attention.rest(late), Rest::kNap);
  attention.turn(1, 0, late + kShared.holds);
  EXPECT_EQ(attention.rest(late + kShared.holds), Rest::kYield) << "perhaps no longer";
}

TEST_F(AttentionTest, EndsForASender) {
  attention.turn(2, 0, kBegin);
  attention.turn(0, 2 * Attention::kPostsPerFrame, kBegin);
  EXPECT_TRUE(attention.on());
  attention.turn(0, 1, kBegin);
  EXPECT_FALSE(attention.on());
}

TEST_F(AttentionTest, WhatManyFramesBuyIsBounded) {
  attention.turn(1'000'000, 0, kBegin);
  attention.turn(0, Attention::kMostPosts, kBegin);
  EXPECT_TRUE(attention.on());
  attention.turn(0, 1, kBegin);
  EXPECT_FALSE(attention.on());
}

}  // namespace
}  // namespace stp::host
