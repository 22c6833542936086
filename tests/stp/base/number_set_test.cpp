// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/number_set.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>

namespace stp::test {
namespace {

TEST(NumberSet, finds_the_next_member_and_the_next_gap_at_every_border) {
  const auto set = std::make_unique<NumberSet>();
  EXPECT_EQ(set->next(0), std::nullopt);
  EXPECT_EQ(set->next_missing(65'535), 65'535U);
  for (const int each : {0, 63, 64, 4'095, 4'096, 65'535}) {
    const auto number = static_cast<std::uint16_t>(each);
    set->insert(number);
    EXPECT_EQ(set->next(number), number);
    EXPECT_EQ(set->next(0), number) << "the others are gone";
    EXPECT_EQ(set->next(std::uint32_t{number} + 1), std::nullopt);
    EXPECT_EQ(set->next_missing(number),
              number == 65'535 ? std::nullopt : std::optional<std::uint32_t>(number + 1U));
    set->erase(number);
    set->erase(number);
  }
  EXPECT_EQ(set->next(0), std::nullopt);
  EXPECT_EQ(set->next(65'536), std::nullopt);
  EXPECT_EQ(set->next_missing(65'536), std::nullopt);
}

TEST(NumberSet, a_full_one_has_no_gap) {
  const auto set = std::make_unique<NumberSet>();
  for (std::uint32_t i = 0; i < 65'536; ++i) set->insert(static_cast<std::uint16_t>(i));
  EXPECT_EQ(set->next_missing(0), std::nullopt);
  set->erase(40'000);
  EXPECT_EQ(set->next_missing(0), 40'000U);
  EXPECT_EQ(set->next_missing(40'001), std::nullopt);
  EXPECT_EQ(set->next(40'000), 40'001U);
}

TEST(NumberSet, holds_the_same_numbers_as_a_set) {
  const auto numbers = std::make_unique<NumberSet>();
  std::set<std::uint32_t> set;
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto number = static_cast<std::uint16_t>(random() % 10 == 0 ? random() : random() % 200);
    if (random() % 2 == 0) {
      numbers->insert(number);
      set.insert(number);
    } else {
      numbers->erase(number);
      set.erase(number);
    }
    const auto from = static_cast<std::uint32_t>(random() % 65'536);
    const auto next = set.lower_bound(from);
    ASSERT_EQ(numbers->next(from), next == set.end() ? std::nullopt : std::optional(*next)) << i;
    auto gap = from;
    while (set.contains(gap)) ++gap;
    ASSERT_EQ(numbers->next_missing(from), gap == 65'536 ? std::nullopt : std::optional(gap)) << i;
  }
}

}  // namespace
}  // namespace stp::test
