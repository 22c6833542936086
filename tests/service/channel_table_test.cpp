// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/channel_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace stp::service {
namespace {

std::unique_ptr<Channel> spare() {
  return std::make_unique<Channel>();
}

TEST(ChannelTable, GivesEachChannelANumberOfItsOwn) {
  ChannelTable table;
  std::set<Bell> numbers;
  for (int i = 0; i < 100; ++i) numbers.insert(table.add(spare()));
  EXPECT_EQ(numbers.size(), 100U);
  EXPECT_EQ(*numbers.rbegin(), 99U);
  EXPECT_EQ(table.numbers(), 100U);
  EXPECT_EQ(table.count(), 100U);
}

// The client's page has a bit for each number, so numbers must not grow for ever.
TEST(ChannelTable, UsesTheNumberOfARemovedChannelAgain) {
  ChannelTable table;
  for (int i = 0; i < 3; ++i) table.add(spare());
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_NE(table.remove(1), nullptr);
    EXPECT_EQ(table.at(1), nullptr);
    EXPECT_EQ(table.count(), 2U);
    EXPECT_EQ(table.add(spare()), 1U);
  }
  EXPECT_EQ(table.numbers(), 3U);
}

TEST(ChannelTable, ANumberBeyondTheLastOneIsNoChannel) {
  ChannelTable table;
  EXPECT_EQ(table.at(0), nullptr);
  table.add(spare());
  EXPECT_NE(table.at(0), nullptr);
  EXPECT_EQ(table.at(1), nullptr);
  EXPECT_EQ(table.at(~Bell{0}), nullptr);
}

TEST(ChannelTable, FindsTheChannelOfAConnectionUntilItEnds) {
  ChannelTable table;
  table.add(spare());
  const auto number = table.add(spare());
  constexpr VcId kVc = 77;
  EXPECT_EQ(table.of(kVc), nullptr);
  table.put_to_use(kVc, number);
  ASSERT_EQ(table.of(kVc), table.at(number));
  EXPECT_EQ(table.at(number)->vc, kVc);
  EXPECT_EQ(table.of(kVc + 1), nullptr);
  table.end_use(kVc);
  EXPECT_EQ(table.of(kVc), nullptr);
  EXPECT_NE(table.at(number), nullptr);  // until it is removed
  table.remove(number);
  EXPECT_EQ(table.at(number), nullptr);
}

TEST(ChannelTable, WhatAChannelTookGoesBackWhenItIsRemoved) {
  ChannelTable table;
  ProgramUse use;
  auto channel = spare();
  channel->one = {use.channels, 1};
  channel->counted_bytes = {use.queue_bytes, 4'096};
  const auto number = table.add(std::move(channel));
  EXPECT_EQ(use.channels, 1U);
  table.remove(number);
  EXPECT_EQ(use.channels, 0U);
  EXPECT_EQ(use.queue_bytes, 0U);
}

}  // namespace
}  // namespace stp::service
