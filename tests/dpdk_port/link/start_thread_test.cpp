// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/start_thread.h"

#include <gtest/gtest.h>

#include <string>
#include <system_error>

#include "tests/no_threads.h"

namespace stp {
namespace {

const auto kError = std::make_error_code(std::errc::resource_unavailable_try_again);

TEST(StartThread, WhereTheNumberOfThreadsIsLimitedTheLimitsAreNamed) {
  const NoThread none(kError);
  EXPECT_STREQ(none.what(), NoThread::kText);
  EXPECT_EQ(none.remedy(), NoThread::kRemedy);
}

TEST(StartThread, WhereTheStackHasNoRoomThatIsNamed) {
  const test::NoThreads now;
  std::string said;
  try {
    start_thread([] {}).join();
  } catch (const NoThread& none) {
    said = none.what();
    EXPECT_EQ(none.code(), kError);
  }
  EXPECT_EQ(said,
            "no thread can be started, because its stack of 137438953472 KiB does not fit into "
            "memory: lower ulimit -s");
  EXPECT_TRUE(NoThread::has_said(said));
}

}  // namespace
}  // namespace stp
