// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/objects.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

// protocol: 9.15, 9.16
TEST(OneSided, a_fetch_is_new_once) {
  using Fetch = OneSided::Fetch;
  OneSided side;
  EXPECT_EQ(side.seen(5), Fetch::kNew);
  EXPECT_EQ(side.seen(5), Fetch::kNew);  // it is not executed yet
  side.done(5, 42);
  EXPECT_EQ(side.seen(5), Fetch::kDone);
  EXPECT_EQ(side.result(5), 42U);
  side.confirm(5);
  EXPECT_EQ(side.seen(5), Fetch::kConfirmed);
  EXPECT_EQ(side.seen(4), Fetch::kNew);
  side.refuse(4);
  EXPECT_EQ(side.seen(4), Fetch::kRefused);
  // A window later it is no longer known.
  EXPECT_EQ(side.seen(4 + OneSided::kWindow), Fetch::kNew);
  EXPECT_EQ(side.seen(4), Fetch::kStale);
  EXPECT_EQ(side.seen(5), Fetch::kConfirmed);
}

TEST(OneSided, owes_no_more_than_a_window_of_answers) {
  OneSided side;
  EXPECT_EQ(side.next(), nullptr);
  OneSided::Reply reply{};
  for (std::uint32_t g = 0; g < OneSided::kWindow; ++g) {
    reply.entry.header.b_num = g;
    ASSERT_FALSE(side.owes(g));
    ASSERT_TRUE(side.owe(reply));
    ASSERT_TRUE(side.owes(g));
  }
  EXPECT_FALSE(side.owe(reply));
  EXPECT_EQ(side.next()->entry.header.b_num, 0U);
  side.pop();
  EXPECT_FALSE(side.owes(0));
  EXPECT_TRUE(side.owe(reply));
}

}  // namespace
}  // namespace stp::test
