// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/reordering.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

// protocol: 10.22
TEST(Reordering, each_that_comes_late_after_it_was_asked_for_doubles_the_distance_once) {
  Reordering order;
  EXPECT_EQ(order.distance(), 8U);
  order.came_late();
  EXPECT_EQ(order.distance(), 8U) << "nothing had been asked for";
  order.asked();
  order.came_late();
  order.came_late();
  EXPECT_EQ(order.distance(), 16U);
  for (int i = 0; i < 20; ++i) {
    order.asked();
    order.came_late();
  }
  EXPECT_EQ(order.distance(), Reordering::kMost);
}

// protocol: 10.22
TEST(Reordering, many_that_had_to_be_asked_for_halve_the_distance) {
  Reordering order;
  for (int i = 0; i < 2; ++i) {
    order.asked();
    order.came_late();
  }
  ASSERT_EQ(order.distance(), 32U);
  for (std::uint32_t i = 0; i + 1 < Reordering::kNeeded; ++i) order.asked();
  EXPECT_EQ(order.distance(), 32U);
  order.asked();
  EXPECT_EQ(order.distance(), 16U);
  for (std::uint32_t i = 0; i < 5 * Reordering::kNeeded; ++i) order.asked();
  EXPECT_EQ(order.distance(), Reordering::kLeast);
}

}  // namespace
}  // namespace stp::test
