// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/ids.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

// protocol: 8.13, 9.1
TEST(Ids, count_up_from_one) {
  Ids ids;
  for (std::uint32_t id = 1; id < 1'000; ++id) ASSERT_EQ(ids.next(), id);
}

TEST(MessageOrder, passes_over_what_was_skipped) {
  MessageOrder order;
  order.skip(3);
  order.skip(2);
  EXPECT_EQ(order.next(), 1U);
  EXPECT_TRUE(order.is_skipped(3));
  order.pass();
  EXPECT_EQ(order.next(), 4U);
  EXPECT_FALSE(order.is_skipped(3)) << "a number is not kept for ever";
}

TEST(MessageOrder, goes_on_when_the_next_one_is_skipped) {
  MessageOrder order;
  order.skip(2);
  order.skip(1);
  EXPECT_EQ(order.next(), 3U);
}

TEST(MessageOrder, ignores_what_is_past_or_too_far_ahead) {
  MessageOrder order;
  order.pass();
  order.skip(1);
  order.skip(2 + MessageOrder::kMaxAhead);
  EXPECT_EQ(order.next(), 2U);
  EXPECT_FALSE(order.is_skipped(1));
  EXPECT_FALSE(order.is_skipped(2 + MessageOrder::kMaxAhead));
  EXPECT_TRUE(order.is_near(1 + MessageOrder::kMaxAhead));
}

TEST(MessageOrder, of_what_has_no_number_says_nothing) {
  const MessageOrder order;
  EXPECT_FALSE(order.is_past(0));
  EXPECT_FALSE(order.is_ahead(0));
  EXPECT_FALSE(MessageOrder::is_before(0, 1));
  EXPECT_FALSE(MessageOrder::is_before(1, 0));
}

TEST(MessageOrder, is_that_of_a_circle) {
  EXPECT_TRUE(MessageOrder::is_before(1, 2));
  EXPECT_FALSE(MessageOrder::is_before(2, 2));
  EXPECT_TRUE(MessageOrder::is_before(0xffff'ffff, 3));
}

}  // namespace
}  // namespace stp::test
