// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/grant_account.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

class GrantAccountTest : public ::testing::Test {
 protected:
  NodeGrants node;
  std::uint64_t owner = 0;
  GrantAccount account{node, owner}, second{node, owner};

  void expect(std::uint64_t charged, std::uint64_t silent) const {
    EXPECT_EQ(node.charged, charged);
    EXPECT_EQ(owner, charged);
    EXPECT_EQ(node.silent, silent);
  }
};

TEST_F(GrantAccountTest, what_is_granted_is_charged_until_it_is_settled) {
  account.grant(100);
  second.grant(50);
  expect(150, 0);
  account.settle(30);
  EXPECT_EQ(account.outstanding(), 70U);
  EXPECT_EQ(second.outstanding(), 50U);
  expect(120, 0);
  EXPECT_FALSE(node.look_again);
  account.settle(70);
  second.settle(50);
  expect(0, 0);
  EXPECT_TRUE(node.look_again) << "an owner without grants may have one whatever the others have";
}

// protocol: 10.8
TEST_F(GrantAccountTest, short_stus_are_charged_like_the_longest) {
  GrantAccount of_short{node, owner, 3};
  of_short.grant(100);
  expect(800, 0);
  EXPECT_EQ(of_short.outstanding(), 100U);
  EXPECT_EQ(of_short.charge_of(10), 80U);
  ASSERT_TRUE(of_short.write_off(800));
  expect(0, 800);
  of_short.arrived();
  of_short.settle(100);
  expect(0, 0);
}

TEST_F(GrantAccountTest, what_a_silent_peer_owes_does_not_block_others_up_to_a_limit) {
  account.grant(100);
  second.grant(60);
  EXPECT_FALSE(account.write_off(99));
  expect(160, 0);
  EXPECT_TRUE(account.write_off(150));
  expect(60, 100);
  EXPECT_EQ(account.outstanding(), 100U);
  EXPECT_FALSE(second.write_off(150)) << "all of them together";
  expect(60, 100);
}

TEST_F(GrantAccountTest, it_counts_again_when_something_arrives) {
  account.grant(100);
  ASSERT_TRUE(account.write_off(1'000));
  account.settle(10);  // will not arrive: a Block of it has ended
  expect(0, 90);
  account.grant(5);  // a new one is charged, as any other
  expect(5, 90);
  account.arrived();
  expect(95, 0);
  EXPECT_EQ(account.outstanding(), 95U);
  account.arrived();
  expect(95, 0);
}

TEST_F(GrantAccountTest, what_is_forgotten_is_in_neither_sum) {
  account.grant(100);
  ASSERT_TRUE(account.write_off(1'000));
  account.grant(20);
  account.forget();
  expect(0, 0);
  EXPECT_EQ(account.outstanding(), 120U);
  EXPECT_TRUE(account.write_off(0)) << "it is in no sum that could be full";
  expect(0, 0);
  account.arrived();
  expect(120, 0);
  account.forget();
  expect(0, 0);
  account.settle(120);
  expect(0, 0);
  account.grant(7);
  ASSERT_TRUE(account.write_off(7));
  expect(0, 7);  // what was forgotten is over
}

}  // namespace
}  // namespace stp::test
