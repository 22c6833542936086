// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/work_meter.h"

#include <gtest/gtest.h>

#include <thread>

namespace stp::test {
namespace {

class WorkMeter : public ::testing::Test {
  void SetUp() override {
    if (!work::kMetered) GTEST_SKIP() << "this build does not meter work";
  }
};

TEST_F(WorkMeter, the_innermost_hold_counts) {
  work::count("nothing holds", 1'000'000'000);
  work::Hold const outer("outer", 100);
  work::count("a", 60);
  {
    work::Hold const inner("inner", 100);
    work::count("b", 99);
    EXPECT_EQ(work::counted(), 99U);
  }
  EXPECT_EQ(work::counted(), 60U);
}

TEST_F(WorkMeter, a_call_is_a_hold_only_if_there_is_none) {
  {
    work::Call const call("a call");
    work::count("a", 5);
    EXPECT_EQ(work::counted(), 5U);
  }
  work::Hold const hold("a hold");
  work::Call const call("a call");
  work::count("b", 3);
  work::Call const next("another");
  EXPECT_EQ(work::counted(), 3U);
}

TEST_F(WorkMeter, each_thread_has_its_own) {
  work::Hold const hold("a hold", 10);
  std::thread([] { work::count("of another thread", 1'000); }).join();
  EXPECT_EQ(work::counted(), 0U);
}

TEST_F(WorkMeter, what_is_too_much_ends_the_process_and_names_the_work) {
  const auto work_of = [](std::uint64_t operations) {
    work::Hold const hold("the turn", 100);
    work::count("things", operations);
  };
  work_of(100);
  EXPECT_DEATH(work_of(101), "the turn does too much: 101 operations, the last 101.*things");
}

}  // namespace
}  // namespace stp::test
