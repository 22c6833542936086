// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/assert.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

[[maybe_unused]] bool counted(int& evaluations, bool result) {
  ++evaluations;
  return result;
}

TEST(Assert, a_condition_that_holds_is_passed) {
  int evaluations = 0;
  STP_ASSERT(counted(evaluations, true));
  STP_ASSERT(counted(evaluations, true), "it holds");
  EXPECT_EQ(evaluations, kAsserts ? 2 : 0);
}

TEST(Assert, is_one_statement) {
  int other = 0;
  if (other == 0)
    STP_ASSERT(other == 0, "no brace is needed");
  else
    other = 1;
  EXPECT_EQ(other, 0);
}

#ifdef STP_ASSERTIONS_ON

TEST(AssertDeathTest, a_violated_condition_ends_the_process_with_its_place_and_words) {
  const int open = 0;
  EXPECT_DEATH(STP_ASSERT(open > 0, "a Block that completes was open"),
               "assert_test.cpp:[0-9]+: assertion violated: open > 0: "
               "a Block that completes was open");
  EXPECT_DEATH(STP_ASSERT(open > 0), "assertion violated: open > 0");
}

#else

TEST(Assert, a_condition_is_not_evaluated_where_assertions_are_off) {
  int evaluations = 0;
  STP_ASSERT(counted(evaluations, false), "never asked");
  EXPECT_EQ(evaluations, 0);
}

#endif

}  // namespace
}  // namespace stp::test
