// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/scheduling.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>
#include <thread>

#include "tests/service/served_socket.h"

namespace stp::service {
namespace {

TEST(Scheduling, AThreadThatAsksForShortSlicesHasThemAndItsNicenessStays) {
  std::optional<Scheduling> before, after;
  std::thread([&] {
    if (::setpriority(PRIO_PROCESS, 0, 5) != 0) return;  // this thread alone, as Linux has it
    before = scheduling();
    ask_for_short_slices();
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
      count += is->slice == kShortSlice ? 1 : 0;
  return count;
}

// Whoever waits for a processor while it holds the lock of the link holds up the link.
TEST(Scheduling, TheThreadsOfADaemonThatHoldItsLockHaveShortSlices) {
  if (const auto own = scheduling(); !own || own->slice == 0)
    GTEST_SKIP() << "this kernel knows no slices";
  ServedSocket daemon;
  daemon.start();
  EXPECT_TRUE(eventually([] { return threads_with_short_slices() == 2; }));
}

}  // namespace
}  // namespace stp::service
