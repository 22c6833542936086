// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/window_purse.h"

#include <gtest/gtest.h>

#include <optional>

namespace stp::test::window_purse_test {
namespace {

constexpr std::uint64_t kStep = WindowPurse::kStep, kOwner = 7;

struct Budget : WindowBudget {
  bool hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) override {
    EXPECT_EQ(owner, kOwner);
    EXPECT_EQ(before, held) << "the purse says what it holds";
    ++calls;
    if (bytes > limit) return false;
    held = bytes;
    return true;
  }
  std::uint64_t limit = 10 * kStep, held = 0;
  unsigned calls = 0;
};

class WindowPurseTest : public ::testing::Test {
 protected:
  Budget budget;
  bool freed = false;
  std::optional<WindowPurse> purse{std::in_place, &budget, kOwner, freed};
};

// protocol: 7.19
TEST_F(WindowPurseTest, the_budget_is_asked_for_steps_not_for_each_block) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(purse->take(kStep / 100));
  EXPECT_EQ(budget.calls, 1U);
  EXPECT_EQ(budget.held, kStep);
  ASSERT_TRUE(purse->take(kStep));
  EXPECT_EQ(budget.held, 2 * kStep);
  EXPECT_EQ(purse->used(), kStep / 100 * 100 + kStep);
  purse->give(purse->used());
}

TEST_F(WindowPurseTest, what_is_left_of_a_step_serves_to_the_last_byte) {
  budget.limit = kStep + 10;
  ASSERT_TRUE(purse->take(kStep));
  EXPECT_TRUE(purse->has(10));
  EXPECT_FALSE(purse->is_short());
  EXPECT_FALSE(purse->has(11));
  EXPECT_TRUE(purse->is_short());
  EXPECT_FALSE(purse->take(11));
  EXPECT_EQ(purse->used(), kStep) << "what failed took nothing";
  EXPECT_TRUE(purse->take(10));
  purse->give(kStep + 10);
}

TEST_F(WindowPurseTest, more_than_a_step_that_is_not_used_goes_back) {
  ASSERT_TRUE(purse->take(4 * kStep));
  purse->give(kStep);
  EXPECT_EQ(budget.held, 4 * kStep) << "some is kept for the next";
  purse->give(kStep);
  EXPECT_EQ(budget.held, 2 * kStep);
  purse->give(2 * kStep);
  ASSERT_TRUE(purse->take(1));
  purse->give(1);
  EXPECT_EQ(budget.held, kStep);
  purse.reset();
  EXPECT_EQ(budget.held, 0U);
}

TEST_F(WindowPurseTest, who_waits_for_memory_is_told_when_some_is_freed) {
  ASSERT_TRUE(purse->take(budget.limit));
  purse->give(1);
  EXPECT_FALSE(freed) << "nobody waits";
  ASSERT_FALSE(purse->has(2));
  purse->give(1);
  EXPECT_TRUE(freed);
  purse->give(budget.limit - 2);
}

TEST_F(WindowPurseTest, without_a_budget_there_is_no_limit) {
  WindowPurse unlimited(nullptr, kOwner, freed);
  ASSERT_TRUE(unlimited.take(~std::uint64_t{0}));
  EXPECT_FALSE(unlimited.is_short());
  unlimited.give(~std::uint64_t{0});
}

// protocol: 7.19
TEST_F(WindowPurseTest, bytes_go_back_to_their_purse_when_their_holder_ends) {
  {
    WindowBytes bytes;
    ASSERT_TRUE(bytes.add(&*purse, 100));
    ASSERT_TRUE(bytes.add(&*purse, 50));
    bytes.give(30);
    EXPECT_EQ(purse->used(), 120U);
    WindowBytes moved(std::move(bytes));
    bytes.reset();
    EXPECT_EQ(purse->used(), 120U) << "they are another one's";
    WindowBytes third;
    ASSERT_TRUE(third.add(&*purse, 1));
    third = std::move(moved);
    EXPECT_FALSE(third.add(&*purse, budget.limit));
    EXPECT_EQ(purse->used(), 121U);
  }
  EXPECT_EQ(purse->used(), 0U);
}

}  // namespace
}  // namespace stp::test::window_purse_test
