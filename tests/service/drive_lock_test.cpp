// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/drive_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace stp::service {
namespace {

void wait_until_wanted(const DriveLock& lock) {
  while (!lock.wanted()) std::this_thread::yield();
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
}  // namespace stp::service
