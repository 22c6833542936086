// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/bufx_space.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace stp::test {
namespace {

using managed::BufxSpace;
constexpr auto kEntries = BufxSpace::kEntries;

TEST(BufxSpace, the_lowest_range_that_is_large_enough_is_taken) {
  BufxSpace space;
  EXPECT_EQ(space.take(10), 0U);
  EXPECT_EQ(space.take(5), 10U);
  EXPECT_EQ(space.take(10), 15U);
  space.give_back(10, 5);
  EXPECT_EQ(space.take(6), 25U) << "the hole is too small";
  EXPECT_EQ(space.take(5), 10U);
}

TEST(BufxSpace, it_ends_with_its_last_value) {
  BufxSpace space;
  EXPECT_EQ(space.take(kEntries + 1), std::nullopt);
  EXPECT_EQ(space.take(kEntries), 0U);
  EXPECT_EQ(space.take(1), std::nullopt);
  space.give_back(kEntries - 1, 1);
  EXPECT_EQ(space.take(1), kEntries - 1);
}

TEST(BufxSpace, neighbours_become_one_whichever_comes_back_first) {
  for (const auto& order : {std::vector<std::uint32_t>{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    BufxSpace space;
    ASSERT_EQ(space.take(kEntries), 0U);
    for (const auto third : order) space.give_back(third * 100, 100);
    EXPECT_EQ(space.take(300), 0U);
    EXPECT_EQ(space.take(1), std::nullopt);
  }
}

// Against a plain array, in an order that a seed decides.
TEST(BufxSpace, no_value_is_given_to_two) {
  BufxSpace space;
  std::vector<bool> taken(2'000);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
  std::mt19937 random(1);
  for (int i = 0; i < 5'000; ++i) {
    if (!ranges.empty() && (random() % 2 == 0 || ranges.size() > 60)) {
      const auto at = random() % ranges.size();
      const auto [first, count] = ranges[at];
      space.give_back(first, count);
      for (std::uint32_t j = 0; j < count; ++j) taken[first + j] = false;
      ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    const auto count = static_cast<std::uint32_t>(1 + random() % 20);
    const auto first = space.take(count);
    ASSERT_TRUE(first && *first + count <= taken.size());
    for (std::uint32_t j = 0; j < count; ++j) {
      ASSERT_FALSE(taken[*first + j]) << i;
      taken[*first + j] = true;
    }
    ranges.emplace_back(*first, count);
  }
}

}  // namespace
}  // namespace stp::test
