// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/unproven.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

constexpr auto kOneSource = MacAddr::from_u64(0x020000000001);
constexpr auto kOtherSource = MacAddr::from_u64(0x020000000002);

MacAddr station(std::size_t number) {
  return MacAddr::from_u64(0x020000010000 + number);
}

class UnprovenTest : public ::testing::Test {
 protected:
  Unproven unproven;

  void add(EndpointId listener, const MacAddr& mac, std::size_t count = 1) {
    for (std::size_t i = 0; i < count; ++i)
      unproven.add({.vc = ++last_, .listener = listener, .source = mac});
  }
  VcId last_ = 0;
};

// protocol: 5.34
TEST_F(UnprovenTest, one_source_takes_half_of_a_listeners_places) {
  add(1, kOneSource, Unproven::kOfSource - 1);
  EXPECT_FALSE(unproven.is_full(1, kOneSource));
  add(1, kOneSource);
  EXPECT_TRUE(unproven.is_full(1, kOneSource));
  EXPECT_FALSE(unproven.is_full(1, kOtherSource));
  EXPECT_FALSE(unproven.is_full(2, kOneSource)) << "another listener";
}

// protocol: 5.34
TEST_F(UnprovenTest, a_listener_has_few_places_for_all_sources) {
  for (std::size_t i = 0; i < Unproven::kOfListener; ++i) {
    EXPECT_FALSE(unproven.is_full(1, kOneSource)) << i;
    add(1, station(i));
  }
  EXPECT_TRUE(unproven.is_full(1, kOneSource));
  EXPECT_FALSE(unproven.is_full(2, kOneSource));
  unproven.remove_if([](const auto& entry) { return entry.source == station(3); });
  EXPECT_FALSE(unproven.is_full(1, kOneSource));
}

// protocol: 5.34
TEST_F(UnprovenTest, a_node_has_few_places_for_all_listeners) {
  for (std::size_t i = 0; i < Unproven::kOfNode; ++i) add(100 + i, station(i));
  EXPECT_TRUE(unproven.is_full(1, kOneSource));
  add(1, kOneSource);  // without a place, it is not kept
  EXPECT_EQ(unproven.entries().size(), Unproven::kOfNode);
  EXPECT_EQ(unproven.entries().front().vc, 1U);
  EXPECT_EQ(unproven.entries().back().vc, Unproven::kOfNode);
}

TEST_F(UnprovenTest, a_look_at_them_is_worth_it_when_there_are_new_ones_or_after_a_while) {
  unproven.looked_at(kSecond);
  EXPECT_FALSE(unproven.is_worth_a_look(kSecond + Unproven::kLookInterval - 1));
  EXPECT_TRUE(unproven.is_worth_a_look(kSecond + Unproven::kLookInterval));
  add(1, kOneSource);
  EXPECT_TRUE(unproven.is_worth_a_look(kSecond));
  unproven.looked_at(kSecond);
  EXPECT_FALSE(unproven.is_worth_a_look(kSecond));
}

}  // namespace
}  // namespace stp::test
