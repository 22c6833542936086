// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/objects.h"

#include <gtest/gtest.h>

#include "tests/stp/node/vc_fixture.h"

namespace stp::test {
namespace {

constexpr std::uint32_t kTransfer = 9, kRemembered = 64;

// protocol: 8.12
TEST(PermittedBlocks, the_block_of_a_repeated_cts_is_remembered_as_long_as_that_of_a_new_one) {
  PermittedBlocks blocks;
  for (std::uint32_t k = 0; k < kRemembered; ++k) blocks.remember(kTransfer, k, k);
  for (const auto repeated : {0U, 40U, 0U}) blocks.remember(kTransfer, repeated, 1000 + repeated);
  for (std::uint32_t k = 100; k < 100 + kRemembered - 2; ++k) blocks.remember(kTransfer, k, k);
  EXPECT_EQ(blocks.start_of(kTransfer, 0), 1000U);
  EXPECT_EQ(blocks.start_of(kTransfer, 40), 1040U);
  EXPECT_FALSE(blocks.start_of(kTransfer, 1));
  blocks.remember(kTransfer, 200, 200);
  EXPECT_FALSE(blocks.start_of(kTransfer, 40));
  EXPECT_EQ(blocks.start_of(kTransfer, 0), 1000U);
}

TEST(PermittedBlocks, a_repeat_among_few_forgets_nothing) {
  PermittedBlocks blocks;
  for (const auto k : {1U, 2U, 3U, 1U, 3U}) blocks.remember(kTransfer, k, k);
  for (const auto k : {1U, 2U, 3U}) EXPECT_EQ(blocks.start_of(kTransfer, k), k);
}

TEST(PermittedBlocks, the_first_and_the_last_are_found_in_whatever_order_they_came) {
  PermittedBlocks blocks;
  EXPECT_FALSE(blocks.start_of(0, 0));
  for (const auto k : {50U, 10U, 90U}) blocks.remember(kTransfer, k, k);
  for (const auto k : {50U, 10U, 90U}) EXPECT_EQ(blocks.start_of(kTransfer, k), k);
  EXPECT_FALSE(blocks.start_of(kTransfer, 9));
  EXPECT_FALSE(blocks.start_of(kTransfer, 91));
  blocks.clear();
  for (const auto k : {50U, 10U, 90U}) EXPECT_FALSE(blocks.start_of(kTransfer, k));
}

TEST(Turns, go_round_among_owners_however_many_connections_one_has) {
  Vcs many, few;
  auto &a = many.make(1), &b = many.make(2), &c = many.make(3), &d = few.make(1);
  Turns turns;
  EXPECT_TRUE(turns.empty());
  for (auto* vc : {&a, &b, &c, &d}) turns.enter(*vc);
  turns.enter(a);  // it is already there and keeps its place
  EXPECT_EQ(&turns.next(), &a);
  EXPECT_EQ(&turns.next(), &d);
  turns.enter(d);
  EXPECT_EQ(&turns.next(), &b);
  EXPECT_EQ(&turns.next(), &d);
  EXPECT_EQ(&turns.next(), &c);
  EXPECT_TRUE(turns.empty());
}

TEST(Turns, who_is_over_has_none) {
  Vcs one, other;
  auto &a = one.make(1), &b = other.make(1);
  Turns turns;
  turns.enter(a);
  turns.enter(b);
  Turns::leave(a);
  EXPECT_EQ(&turns.next(), &b);
  EXPECT_TRUE(turns.empty());
  Turns::leave(b);
  EXPECT_TRUE(turns.empty());
}

}  // namespace
}  // namespace stp::test
