// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/link_mutex.h"

#include <gtest/gtest.h>

#include <thread>

namespace stp::test::link_mutex_test {
namespace {

// Without that, it would have the mutex again before the other one is awake.
TEST(LinkMutex, WhoPollsLetsThoseGoFirstThatWait) {
  fi::LinkMutex mutex;
  for (int i = 0; i < 20; ++i) {
    auto had = false;
    mutex.lock();
    std::thread other([&] {
      fi::LinkLock const lock(mutex);
      had = true;
    });
    while (!mutex.is_awaited()) std::this_thread::yield();
    mutex.unlock();
    {
      fi::PollLock const lock(mutex);
      EXPECT_TRUE(had);
    }
    other.join();
  }
}

}  // namespace
}  // namespace stp::test::link_mutex_test
