// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/scheduling.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

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

}  // namespace
}  // namespace stp::service
