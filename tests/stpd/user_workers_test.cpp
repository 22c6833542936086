// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/workers.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "libst/os/mapping_turn.h"
#include "tests/host/eventually.h"

namespace stp::stpd {
namespace {

constexpr uid_t kBusyUser = 1'001, kOtherUser = 1'002;

// Work that takes until go() is called.
class Slow {
 public:
  ~Slow() { go(); }
  UserWorkers::Work work() {
    return [this, may = may_.get_future().share()] {
      ++begun;
      may.wait();
    };
  }
  void go() {
    if (!gone_) may_.set_value();
    gone_ = true;
  }
  std::atomic<unsigned> begun{0};

 private:
  std::promise<void> may_;
  bool gone_ = false;
};

TEST(UserWorkers, TheWorkOfOneUserHoldsUpThatOfNoOther) {
  std::vector<std::unique_ptr<Slow>> slow;
  UserWorkers workers;
  for (int i = 0; i < 5; ++i) {
    slow.push_back(std::make_unique<Slow>());
    workers.give(kBusyUser, slow.back()->work());
  }
  ASSERT_TRUE(host::eventually([&] { return slow[0]->begun + slow[1]->begun == 2; }));
  std::atomic<bool> done{false};
  workers.give(kOtherUser, [&] { done = true; });
  EXPECT_TRUE(host::eventually([&] { return done.load(); }));
  EXPECT_EQ(slow[2]->begun, 0U) << "a user has no more threads than that";
  EXPECT_EQ(workers.waiting(kBusyUser), 5U);
  EXPECT_TRUE(host::eventually([&] { return workers.waiting(kOtherUser) == 0; }));
  for (auto& one : slow) one->go();
  EXPECT_TRUE(host::eventually([&] { return workers.waiting(kBusyUser) == 0; }));
  EXPECT_EQ(slow[4]->begun, 1U);
}

// A file of the first user has kept the process from mapping anything for two seconds.
TEST(UserWorkers, WhoseFilesMakeThemWaitGetsNoMoreDoneForAHundredTimesAsLong) {
  using namespace std::chrono_literals;
  UserWorkers workers;
  for (const auto user : {kBusyUser, uid_t{0}}) {
    workers.give(user, [] { os::MappingTurn::time_off() += 2s; });
    ASSERT_TRUE(host::eventually([&] { return workers.waiting(user) == 0; }));
  }
  const auto now = UserWorkers::Clock::now();
  EXPECT_TRUE(workers.is_stuck(kBusyUser, now));
  EXPECT_TRUE(workers.is_stuck(kBusyUser, now + 80s));
  EXPECT_FALSE(workers.is_stuck(kBusyUser, now + 102s));
  EXPECT_FALSE(workers.is_stuck(kOtherUser, now));
  EXPECT_FALSE(workers.is_stuck(0, now)) << "root is forgiven";
}

TEST(UserWorkers, WhoHoldsUpAThreadIsToldOnceOfEachWork) {
  std::array<Slow, UserWorkers::kThreadsPerUser> slow;
  UserWorkers workers;
  const auto told = [&](UserWorkers::Clock::duration later) {
    std::size_t times = 0;
    while (const auto user = workers.held_up(UserWorkers::Clock::now() + later)) {
      EXPECT_EQ(*user, kBusyUser);
      ++times;
    }
    return times;
  };
  for (auto& one : slow) workers.give(kBusyUser, one.work());
  for (auto& one : slow) ASSERT_TRUE(host::eventually([&] { return one.begun == 1; }));
  EXPECT_EQ(told({}), 0U);
  EXPECT_EQ(told(UserWorkers::kHeldUp), slow.size());
  EXPECT_EQ(told(2 * UserWorkers::kHeldUp), 0U);
  for (auto& one : slow) one.go();
  ASSERT_TRUE(host::eventually([&] { return workers.waiting(kBusyUser) == 0; }));
  EXPECT_EQ(told(UserWorkers::kHeldUp), 0U);
}

// A program that ends may have had thousands of regions, and the next one begins at once.
TEST(UserWorkers, WhatIsReleasedMakesNobodyStuck) {
  std::array<Slow, UserWorkers::kThreadsPerUser> slow;
  const auto workers = std::make_shared<UserWorkers>();
  for (auto& one : slow) workers->give(kBusyUser, one.work(), UserWorkers::Kind::kRelease);
  for (std::size_t i = 0; i < 2 * UserWorkers::kMostPerUser; ++i)
    UserWorkers::guard(workers, kBusyUser, std::make_shared<int>(1));
  EXPECT_GE(workers->waiting(kBusyUser), UserWorkers::kMostPerUser);
  EXPECT_FALSE(workers->is_stuck(kBusyUser));
  for (auto& one : slow) one.go();
  EXPECT_TRUE(host::eventually([&] { return workers->waiting(kBusyUser) == 0; }));
}

TEST(UserWorkers, ShortWaitsDoNotCount) {
  UserWorkers workers;
  for (int i = 0; i < 100; ++i)
    workers.give(kBusyUser, [] { os::MappingTurn::time_off() += UserWorkers::kLongSleep / 2; });
  ASSERT_TRUE(host::eventually([&] { return workers.waiting(kBusyUser) == 0; }));
  EXPECT_FALSE(workers.is_stuck(kBusyUser));
}

TEST(UserWorkers, RootIsServedWhenOthersHoldAllThreads) {
  std::vector<std::unique_ptr<Slow>> slow;
  UserWorkers workers;
  for (uid_t user = 1; user <= UserWorkers::kThreads + UserWorkers::kFirstThreads; ++user) {
    slow.push_back(std::make_unique<Slow>());
    workers.give(user + 100'000, slow.back()->work());
  }
  for (const auto& one : slow) ASSERT_TRUE(host::eventually([&] { return one->begun == 1; }));
  std::atomic<bool> done{false}, late{false};
  workers.give(kOtherUser, [&] { late = true; });
  workers.give(0, [&] { done = true; });
  EXPECT_TRUE(host::eventually([&] { return done.load(); }));
  EXPECT_FALSE(late);
  slow[0]->go();
  EXPECT_TRUE(host::eventually([&] { return late.load(); }));
  for (auto& one : slow) one->go();
}

// As one person with many uids can.
TEST(UserWorkers, AUserForWhomNoneWorksGetsAThreadWhenOthersHoldManyOfThem) {
  std::vector<std::unique_ptr<Slow>> slow;
  UserWorkers workers;
  constexpr auto kHolders = UserWorkers::kThreads / UserWorkers::kThreadsPerUser;
  for (uid_t user = 1; user <= kHolders; ++user)
    for (unsigned i = 0; i < UserWorkers::kThreadsPerUser; ++i) {
      slow.push_back(std::make_unique<Slow>());
      workers.give(user + 100'000, slow.back()->work());
    }
  for (const auto& one : slow) ASSERT_TRUE(host::eventually([&] { return one->begun == 1; }));
  std::atomic<bool> done{false};
  workers.give(kOtherUser, [&] { done = true; });
  EXPECT_TRUE(host::eventually([&] { return done.load(); }));
  for (auto& one : slow) one->go();
}

TEST(UserWorkers, AUserWithMuchThatWaitsIsStuckUntilItIsDone) {
  Slow first, second;
  UserWorkers workers;
  workers.give(kBusyUser, first.work());
  workers.give(kBusyUser, second.work());
  while (!workers.is_stuck(kBusyUser)) workers.give(kBusyUser, [] {});
  EXPECT_EQ(workers.waiting(kBusyUser), UserWorkers::kMostPerUser);
  EXPECT_FALSE(workers.is_stuck(kOtherUser));
  first.go();
  second.go();
  EXPECT_TRUE(host::eventually([&] { return !workers.is_stuck(kBusyUser); }));
}

TEST(UserWorkers, WhatIsGuardedIsReleasedByOneOfThem) {
  auto workers = std::make_shared<UserWorkers>();
  std::promise<std::thread::id> released;
  std::shared_ptr<void> thing(nullptr,
                              [&](void*) { released.set_value(std::this_thread::get_id()); });
  auto guarded = UserWorkers::guard(workers, kBusyUser, std::move(thing));
  auto copy = guarded;
  guarded.reset();
  copy.reset();
  EXPECT_NE(released.get_future().get(), std::this_thread::get_id());
}

}  // namespace
}  // namespace stp::stpd
