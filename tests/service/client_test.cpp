// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/client.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "tests/service/eventually.h"

namespace stp::service {
namespace {

long wake_on(std::atomic<std::uint32_t>& word, int most) {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, most, nullptr,
                   nullptr, 0);
}

// Moves the sleepers to another word of the page, which costs none of them its sleep.
long asleep_on(std::atomic<std::uint32_t>& word, std::atomic<std::uint32_t>& other) {
  const auto moved =
      ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_REQUEUE, 0,
                std::numeric_limits<int>::max(), reinterpret_cast<std::uint32_t*>(&other), 0);
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&other), FUTEX_REQUEUE, 0,
            std::numeric_limits<int>::max(), reinterpret_cast<std::uint32_t*>(&word), 0);
  return moved;
}

// A program may let any number of threads sleep on its page.
TEST(Client, AnEventWakesOneSleeperWhateverTheirNumber) {
  constexpr int kSleepers = 20;
  Client client;
  client.page_memory = SharedMemory::create("test", sizeof(ClientPage));
  ASSERT_TRUE(client.page_memory);
  auto& page = client.page();
  page.sleepers = kSleepers;
  std::atomic<int> awake{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kSleepers; ++i)
    threads.emplace_back([&] {
      const timespec most{.tv_sec = 30, .tv_nsec = 0};
      ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&page.events), FUTEX_WAIT, 0, &most,
                nullptr, 0);
      ++awake;
    });
  EXPECT_TRUE(eventually([&] { return asleep_on(page.events, page.accepts) == kSleepers; }));
  client.wake();
  EXPECT_TRUE(eventually([&] { return awake == 1; }));
  EXPECT_EQ(wake_on(page.events, std::numeric_limits<int>::max()), kSleepers - 1);
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace stp::service
