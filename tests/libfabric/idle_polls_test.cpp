// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/idle_polls.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

using fi::IdlePolls;

// How many polls it takes until it is time.
unsigned until_time(IdlePolls& polls) {
  unsigned count = 1;
  while (!polls.is_time()) ++count;
  return count;
}

TEST(IdlePolls, FewerAreEnoughWhereTheCoreIsCrowded) {
  IdlePolls polls;
  EXPECT_EQ(until_time(polls), IdlePolls::kMany);
  polls.looked(true);
  EXPECT_EQ(until_time(polls), IdlePolls::kFew);
  polls.looked(false);
  EXPECT_EQ(until_time(polls), IdlePolls::kMany - IdlePolls::kFew);
}

// A program that is told one message after the other, and polls once more each time, does not
// sleep.
TEST(IdlePolls, OneAfterWhatWasToldIsNotInVain) {
  IdlePolls polls;
  polls.looked(true);
  for (int i = 0; i < 100; ++i) {
    polls.told();
    EXPECT_FALSE(polls.is_time());
  }
}

TEST(IdlePolls, SleepsAreMostlyWhereEventsComeButNotAlone) {
  IdlePolls polls;
  EXPECT_TRUE(polls.may_sleep(false));
  unsigned count = 1;
  while (!polls.may_sleep(true)) ++count;
  EXPECT_EQ(count, IdlePolls::kOfOthers);
}

}  // namespace
}  // namespace stp::test
