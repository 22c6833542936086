// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/blocks_ahead.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace stp::test {
namespace {

// protocol: 9.6
TEST(BlocksAhead, a_run_of_complete_blocks_is_passed_at_once) {
  BlocksAhead ahead;
  EXPECT_TRUE(ahead.empty());
  EXPECT_FALSE(ahead.contains(1, 0));
  for (const std::uint32_t b : {1U, 2U, 4U}) ahead.insert(b, 0);
  EXPECT_FALSE(ahead.contains(0, 0));
  EXPECT_TRUE(ahead.contains(1, 0));
  EXPECT_FALSE(ahead.contains(3, 0));
  EXPECT_EQ(ahead.pass(0), 0U) << "Block 0 is not complete";
  EXPECT_EQ(ahead.pass(1), 2U);
  EXPECT_FALSE(ahead.empty());
  EXPECT_TRUE(ahead.contains(4, 3));
  EXPECT_EQ(ahead.pass(4), 1U);
  EXPECT_TRUE(ahead.empty());
}

TEST(BlocksAhead, a_run_of_many_words_is_passed_whatever_word_it_begins_in) {
  for (const std::uint32_t first : {0U, 1U, 63U, 64U, 100U}) {
    BlocksAhead ahead;
    constexpr std::uint32_t kRun = 1'000;
    for (std::uint32_t i = kRun; i >= 1; --i) ahead.insert(first + i, first);
    EXPECT_EQ(ahead.pass(first + 1), kRun) << first;
    EXPECT_TRUE(ahead.empty());
  }
}

TEST(BlocksAhead, numbers_may_wrap) {
  BlocksAhead ahead;
  const std::uint32_t first = 0xffffffe0;
  for (std::uint32_t i = 1; i <= 100; ++i) ahead.insert(first + i, first);
  EXPECT_TRUE(ahead.contains(0, first));
  EXPECT_TRUE(ahead.contains(first + 100, first));
  EXPECT_FALSE(ahead.contains(first + 101, first));
  EXPECT_EQ(ahead.pass(first + 1), 100U);
}

// Against a set: the same Blocks, in an order that a seed decides, while the ring grows.
TEST(BlocksAhead, holds_the_same_blocks_as_a_set) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    BlocksAhead ahead;
    std::set<std::uint32_t> set;
    std::uint32_t first = static_cast<std::uint32_t>(random());
    for (int step = 0; step < 400; ++step) {
      const auto b = first + 1 + static_cast<std::uint32_t>(random() % (step < 200 ? 60 : 700));
      ASSERT_EQ(ahead.contains(b, first), set.contains(b)) << round << ", " << step;
      if (set.insert(b).second) ahead.insert(b, first);
      if (random() % 8 != 0) continue;
      std::uint32_t passed = 0;
      while (set.erase(first + 1 + passed) != 0) ++passed;
      ++first;  // the first incomplete Block completes
      ASSERT_EQ(ahead.pass(first), passed) << round << ", " << step;
      first += passed;
      ASSERT_EQ(ahead.empty(), set.empty());
    }
  }
}

}  // namespace
}  // namespace stp::test
