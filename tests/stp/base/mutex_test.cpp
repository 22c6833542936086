// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace stp::mutex_test {
namespace {

TEST(Mutexes, LetOneThreadInAtATime) {
  constexpr int kThreads = 4, kTimes = 20'000;
  Mutex mutex;
  int inside = 0, times = 0, together = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < kTimes; ++j) {
        const Lock guard(mutex);
        together += ++inside != 1;
        ++times;
        --inside;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(times, kThreads * kTimes);
  EXPECT_EQ(together, 0);
}

TEST(Mutexes, WhoWaitsGetsItWhenTheOtherHasLetGo) {
  for (unsigned i = 0; i < 200; ++i) {
    Mutex mutex;
    std::atomic<bool> asks{false}, has{false};
    mutex.lock();
    std::thread other([&] {
      asks = true;
      const Lock guard(mutex);
      has = true;
    });
    while (!asks) std::this_thread::yield();
    EXPECT_FALSE(has);
    mutex.unlock();
    other.join();
    EXPECT_TRUE(has);
  }
}

// As a thread that waits on a condition does: it is let in again when it is called.
TEST(Mutexes, AreLetGoOfWhileTheirHolderWaitsToBeCalled) {
  Mutex mutex;
  std::condition_variable_any called;
  bool said = false, heard = false;
  std::thread other([&] {
    Lock guard(mutex);
    while (!said) guard.wait(called);
    heard = true;
  });
  {
    const Lock guard(mutex);
    said = true;
  }
  called.notify_all();
  other.join();
  EXPECT_TRUE(heard);
  Lock guard(mutex);
  EXPECT_FALSE(guard.wait_until(called, std::chrono::steady_clock::now())) << "nobody calls";
}

TEST(LockOrder, TakesNoMemoryWhereItIsNotChecked) {
#ifdef STP_WORK_METER
  EXPECT_GT(sizeof(Mutex), sizeof(std::uint32_t));
#else
  EXPECT_EQ(sizeof(Mutex), sizeof(std::uint32_t));
#endif
}

TEST(LockOrder, LocksAreTakenDownwards) {
  Mutex control{LockRank::kControl}, domain{LockRank::kDomain}, stpd{LockRank::kStpd}, other;
  RecursiveMutex registry{LockRank::kRegistry};
  const RecursiveLock first(registry);
  const Lock one(control), two(domain), three(stpd), four(other);
}

// As the gate shuts.
TEST(LockOrder, OfSomeRowsAThreadHoldsSeveral) {
  Mutex gate{LockRank::kGate}, domain{LockRank::kDomain}, another{LockRank::kDomain}, other;
  const Lock all(gate), first(domain), second(another), third(other);
}

// Whatever it held before, and in whatever order it left it.
TEST(LockOrder, WhoHoldsNothingTakesAny) {
  Mutex control{LockRank::kControl}, stpd{LockRank::kStpd};
  control.lock();
  stpd.lock();
  control.unlock();
  stpd.unlock();
  Lock lock(stpd);
  lock.unlock();
  { const Lock guard(control); }
  lock.lock();
  lock.without([&] { const Lock guard(control); });
}

// Who tries does not wait, so nobody can wait for it.
TEST(LockOrder, WhoOnlyTriesMayTakeAny) {
  Mutex control{LockRank::kControl}, stpd{LockRank::kStpd};
  const Lock guard(stpd);
  const bool locked = control.try_lock();
  EXPECT_TRUE(locked);
  if (locked) control.unlock();
}

TEST(LockOrder, OtherThreadsHoldTheirOwn) {
  Mutex control{LockRank::kControl}, stpd{LockRank::kStpd};
  const Lock guard(stpd);
  std::thread([&] { const Lock other(control); }).join();
}

// A mutex of another kind, which notes what is done with it. Who waits is woken at once.
class STP_THREAD_SAFETY(capability("mutex")) Noting {
 public:
  void lock() STP_THREAD_SAFETY(acquire_capability()) { done_ += "lock "; }
  void unlock() STP_THREAD_SAFETY(release_capability()) {
    done_ += "unlock ";
    if (!waker_.joinable()) waker_ = std::thread([this] { called.notify_all(); });
  }
  void check_order() const { done_ += "check "; }
  std::string done() {
    waker_.join();
    return done_;
  }
  std::condition_variable_any called;

 private:
  mutable std::string done_;
  std::thread waker_;
};

TEST(LockOrder, WhoWaitsWithAMutexOfAnotherKindIsCheckedBeforeItSleeps) {
  Noting mutex;
  {
    LockOf<Noting> lock(mutex);
    lock.wait(mutex.called);
  }
  EXPECT_EQ(mutex.done(), "lock check unlock lock unlock ");
}

#ifdef STP_WORK_METER

void take(Mutex& first, Mutex& second) {
  const Lock one(first), two(second);
}

TEST(LockOrderDeathTest, TwoThatAreTakenUpwardsEndTheProcess) {
  Mutex control{LockRank::kControl}, stpd{LockRank::kStpd}, other;
  EXPECT_DEATH(take(stpd, control),
               "takes 'a domain's control lock' while it holds 'the connection to stpd'. "
               "The order:.*a domain's control lock.*the connection to stpd.*any other");
  EXPECT_DEATH(take(other, stpd), "takes 'the connection to stpd' while it holds 'any other");
}

TEST(LockOrderDeathTest, TwoOfOneRowEndTheProcess) {
  Mutex control{LockRank::kControl}, another{LockRank::kControl};
  EXPECT_DEATH(take(control, another),
               "takes 'a domain's control lock' while it holds 'a domain's");
  Mutex one, two;
  EXPECT_DEATH(take(one, two), "takes 'any other: .*' while it holds 'any other: ");
}

TEST(LockOrderDeathTest, TwoDomainsWithoutTheGateEndTheProcess) {
  Mutex domain{LockRank::kDomain}, another{LockRank::kDomain};
  EXPECT_DEATH(take(domain, another), "takes 'a domain' while it holds 'a domain'");
}

// When it is woken, it would wait for the first one again.
TEST(LockOrderDeathTest, WhoSleepsWithOneFurtherDownEndsTheProcess) {
  Mutex control{LockRank::kControl}, stpd{LockRank::kStpd};
  EXPECT_DEATH(
      {
        Lock first(control);
        const Lock second(stpd);
        std::condition_variable_any called;
        first.wait_until(called, std::chrono::steady_clock::now());
      },
      "takes 'a domain's control lock' while it holds 'the connection to stpd'");
}

TEST(LockOrderDeathTest, OneThatWasTriedCountsAsHeld) {
  Mutex control{LockRank::kControl}, stpd{LockRank::kStpd};
  if (!stpd.try_lock()) FAIL() << "nobody has it";
  EXPECT_DEATH({ const Lock guard(control); }, "takes 'a domain's control lock'");
  stpd.unlock();
}

#endif

}  // namespace
}  // namespace stp::mutex_test
