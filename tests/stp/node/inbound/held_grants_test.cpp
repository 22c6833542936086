// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/held_grants.h"

#include <gtest/gtest.h>

#include <set>

namespace stp::test::held_grants_test {
namespace {

using Transfer = HeldGrants::Transfer;
using Fit = HeldGrants::Fit;

class HeldGrantsTest : public ::testing::Test {
 protected:
  HeldGrants held;
  std::set<VcId> without_credit;
  std::uint64_t room = ~std::uint64_t{0};

  void push(const Transfer& transfer, std::uint64_t owner, std::uint32_t b_num,
            std::uint64_t remaining, std::uint64_t charge = 1) {
    SendEntry entry{};
    entry.header.b_num = b_num;
    held.push(transfer, owner, entry, {.charge = charge, .remaining = remaining, .memory = 0});
  }
  std::optional<Transfer> choose(bool by_age = false) {
    return held.choose(by_age, [&](VcId vc, const Inbound::Demand& demand) {
      if (without_credit.contains(vc)) return Fit::kNoRoom;
      return demand.charge <= room ? Fit::kFits : Fit::kTooMuch;
    });
  }
};

constexpr Transfer kA{1, 10}, kB{2, 20}, kC{2, 21};

TEST_F(HeldGrantsTest, those_of_one_transfer_keep_their_order) {
  EXPECT_TRUE(held.empty());
  EXPECT_EQ(choose(), std::nullopt);
  push(kA, 1, 0, 300);
  push(kA, 1, 1, 200);
  push(kA, 1, 2, 100);
  EXPECT_TRUE(held.contains(kA, 1));
  EXPECT_FALSE(held.contains(kA, 3));
  EXPECT_FALSE(held.contains(kB, 1));
  for (std::uint32_t b = 0; b < 3; ++b) {
    ASSERT_EQ(choose(), kA);
    EXPECT_EQ(held.pop(kA).header.b_num, b);
    EXPECT_FALSE(held.contains(kA, b));
  }
  EXPECT_TRUE(held.empty());
  EXPECT_EQ(choose(), std::nullopt);
}

TEST_F(HeldGrantsTest, the_one_that_lacks_least_goes_first_or_the_one_that_waited_longest) {
  push(kA, 1, 0, 300);
  push(kB, 2, 0, 200);
  push(kC, 2, 0, 100);
  EXPECT_EQ(choose(false), kC);
  EXPECT_EQ(choose(true), kA);
  held.pop(kC);
  EXPECT_EQ(choose(false), kB);
  held.pop(kA);
  EXPECT_EQ(choose(true), kB);
}

// What counts is the first CTS of a Transfer, and the first of its connection.
TEST_F(HeldGrantsTest, the_next_of_a_transfer_takes_the_place_of_the_one_that_went) {
  push(kA, 1, 0, 100);
  push(kA, 1, 1, 400);
  push(kB, 1, 0, 200);
  push(kC, 1, 0, 300);
  ASSERT_EQ(choose(), kA);
  held.pop(kA);
  EXPECT_EQ(choose(), kB);
  EXPECT_EQ(choose(true), kA) << "its second CTS came before those of the others";
  held.pop(kB);
  EXPECT_EQ(choose(), kC);
}

TEST_F(HeldGrantsTest, one_that_needs_too_much_lets_another_owner_go) {
  room = 10;
  push(kA, 1, 0, 100, 50);
  push(kB, 2, 0, 900, 5);
  EXPECT_EQ(choose(), kB);
  EXPECT_EQ(choose(true), kB);
  held.pop(kB);
  EXPECT_EQ(choose(), std::nullopt);
  room = 50;
  EXPECT_EQ(choose(), kA);
}

TEST_F(HeldGrantsTest, a_connection_without_credit_waits_until_it_has_some) {
  push(kA, 1, 0, 100);
  push(kB, 1, 0, 200);
  without_credit = {1};
  EXPECT_EQ(choose(), kB) << "of the same owner";
  without_credit.clear();
  EXPECT_EQ(choose(), kB) << "nobody has said that it has credit";
  push(kA, 1, 1, 50);  // more of the one that is parked
  EXPECT_EQ(choose(), kB);
  held.unpark(1);
  held.unpark(1);
  held.unpark(77);
  EXPECT_EQ(choose(), kA);
  without_credit = {1, 2};
  EXPECT_EQ(choose(), std::nullopt);
  held.unpark(2);
  without_credit.clear();
  EXPECT_EQ(choose(), kB);
}

TEST_F(HeldGrantsTest, those_of_what_has_ended_go_at_once_and_their_memory_in_slices) {
  for (std::uint32_t b = 0; b < 10; ++b) {
    push(kA, 1, b, 100);
    push(kB, 2, b, 200);
    push(kC, 2, b, 300);
  }
  EXPECT_EQ(held.drop(kB), 10U);
  EXPECT_EQ(held.drop(kB), 0U);
  EXPECT_FALSE(held.contains(kB, 0));
  EXPECT_TRUE(held.contains(kC, 0));
  EXPECT_EQ(held.drop(VcId{1}), 10U);
  EXPECT_EQ(held.drop(VcId{1}), 0U);
  EXPECT_FALSE(held.contains(kA, 0));
  EXPECT_EQ(choose(), kC);
  EXPECT_TRUE(held.untidy());
  std::size_t freed = 0;
  while (held.untidy()) {
    const auto done = held.tidy(4);
    ASSERT_LE(done, 4U);
    freed += done;
    ASSERT_LE(freed, 20U);
  }
  EXPECT_EQ(freed, 20U);
  EXPECT_EQ(held.tidy(4), 0U);
  EXPECT_EQ(held.drop(VcId{2}), 10U);
  EXPECT_TRUE(held.empty());
}

TEST_F(HeldGrantsTest, a_connection_that_is_parked_can_end) {
  push(kA, 1, 0, 100);
  push(kB, 2, 0, 200);
  without_credit = {1};
  ASSERT_EQ(choose(), kB);
  EXPECT_EQ(held.drop(kA), 1U);
  push(kA, 1, 0, 100);  // a new one is not parked
  without_credit.clear();
  EXPECT_EQ(choose(), kA);
}

// The work of a choice depends on the number of owners only.
TEST_F(HeldGrantsTest, a_choice_takes_a_step_for_each_owner_however_many_are_held) {
  if (!work::kMetered) GTEST_SKIP() << "this build does not meter work";
  for (std::uint32_t i = 0; i < 300; ++i) push({1 + i % 100, i}, i % 100 % 3, 0, 1'000 + i);
  work::Hold const hold("a choice");
  ASSERT_TRUE(choose());
  EXPECT_LE(work::counted(), 3U);
}

}  // namespace
}  // namespace stp::test::held_grants_test
