// SPDX-License-Identifier: BSD-3-Clause
// How much may be granted over all connections, and what of it counts (sections 10 and 13).

#include "stp/node/inbound/grant_limit.h"

#include <gtest/gtest.h>

#include "stp/node/inbound/path.h"

namespace stp {
namespace {

constexpr std::uint64_t kLeast = 100'000, kMost = 1'000'000, kBlock = 10'000;

// protocol: 10.24
TEST(GrantLimitTest, grows_for_who_has_a_quarter_of_it_while_what_was_granted_comes_soon) {
  GrantLimit limit(kLeast, kMost);
  limit.came_soon(kBlock, kLeast / 4 - 1);
  EXPECT_EQ(limit.bytes(), kLeast) << "one of many";
  limit.came_soon(kBlock, kLeast / 4);
  EXPECT_EQ(limit.bytes(), kLeast + kBlock / 8);
  for (int i = 0; i < 1'000; ++i) limit.came_soon(kBlock, limit.bytes());
  EXPECT_EQ(limit.bytes(), kMost);
}

// protocol: 10.24
TEST(GrantLimitTest, shrinks_to_its_least_while_blocks_come_late) {
  GrantLimit limit(kLeast, kMost);
  limit.came_soon(3 * kBlock, kLeast);
  limit.came_late(kBlock);
  EXPECT_EQ(limit.bytes(), kLeast + 2 * kBlock / 8);
  for (int i = 0; i < 10; ++i) limit.came_late(kBlock);
  EXPECT_EQ(limit.bytes(), kLeast);
}

// protocol: 10.24
TEST(GrantLimitTest, grows_slowly_after_a_loss) {
  GrantLimit limit(kLeast, kMost);
  for (int i = 0; i < 1'000; ++i) limit.came_soon(kBlock, limit.bytes());
  ASSERT_EQ(limit.bytes(), kMost);
  limit.lost();
  const auto half = kLeast + (kMost - kLeast) / 2;
  EXPECT_EQ(limit.bytes(), half);
  for (int i = 0; i < 1'000; ++i) limit.came_soon(kBlock, limit.bytes());
  EXPECT_GT(limit.bytes(), half);
  EXPECT_LE(limit.bytes(), half + 1'000 * kBlock / 2'048);
}

TEST(GrantLimitTest, without_room_to_grow_is_fixed) {
  GrantLimit limit(kLeast, 0);
  limit.came_soon(kBlock, kLeast);
  EXPECT_EQ(limit.bytes(), kLeast);
  GrantLimit none(0, kMost);
  none.came_soon(kBlock, kLeast);
  EXPECT_TRUE(none.is_none());
  EXPECT_EQ(none.bytes(), 0U);
}

constexpr std::uint64_t kKib = 1'024;

// protocol: 10.24
TEST(PromptnessTest, shows_no_more_than_twice_what_was_on_its_way) {
  Promptness prompt;
  EXPECT_EQ(prompt.bytes(), 0U);
  for (int i = 0; i < 100; ++i) prompt.came_soon(64 * kKib, 64 * kKib);
  EXPECT_LE(prompt.bytes(), 3 * 64 * kKib) << "Blocks that come one by one show little";
  for (int i = 0; i < 100; ++i) prompt.came_soon(64 * kKib, prompt.bytes());
  EXPECT_GT(prompt.bytes(), 100 * 64 * kKib);
}

// protocol: 10.24
TEST(PromptnessTest, shows_nothing_any_more_once_as_much_has_come_late) {
  Promptness prompt;
  for (int i = 0; i < 8; ++i) prompt.came_soon(64 * kKib, 8 * 64 * kKib);
  prompt.came_late(64 * kKib);
  EXPECT_LE(prompt.bytes(), 7 * 64 * kKib);
  EXPECT_GT(prompt.bytes(), 6 * 64 * kKib);
  for (int i = 0; i < 8; ++i) prompt.came_late(64 * kKib);
  EXPECT_EQ(prompt.bytes(), 0U);
}

// protocol: 10.24
TEST(PromptnessTest, shows_nothing_for_half_a_gibibyte_after_a_loss) {
  Promptness prompt;
  prompt.came_soon(64 * kKib, 64 * kKib);
  prompt.lost();
  std::uint64_t came = 0;
  for (; prompt.bytes() == 0; came += 64 * kKib) prompt.came_soon(64 * kKib, 64 * kKib);
  EXPECT_NEAR(static_cast<double>(came), 512 << 20, 256 << 10);
}

class Grants : public ::testing::Test {
 protected:
  NodeGrants node{.limit = {kLeast, kMost}};
  std::uint64_t owner = 0, other_owner = 0;
  PathTable paths;
  GrantAccount near_by{node, owner}, other{node, other_owner};

  // What comes soon.
  void grow(GrantAccount& account, Time delay = kSoon) {
    account.grant(kLeast);
    for (int i = 0; i < 1'000; ++i) {
      account.grant(kBlock);
      account.began(kBlock, delay);
    }
    account.settle(account.outstanding());
  }
  void fill(GrantAccount& account) {
    while (account.fits(kBlock)) account.grant(kBlock);
  }
};

// protocol: 10.24
TEST_F(Grants, only_a_connection_whose_blocks_come_soon_gets_more_than_the_least) {
  grow(near_by);
  ASSERT_EQ(node.limit.bytes(), kMost);
  fill(other);
  EXPECT_EQ(other.outstanding(), kLeast) << "it has shown nothing";
  other.began(kBlock, kSoon + 1);
  EXPECT_FALSE(other.fits(kBlock));
  EXPECT_EQ(node.limit.bytes(), kMost) << "nor does it take from others what it does not use";
  EXPECT_FALSE(near_by.fits(kBlock)) << "it has too little to be more than one of many";
  other.settle(kLeast);
  fill(near_by);
  EXPECT_EQ(near_by.outstanding(), kMost);
}

// However it behaves from then on: others have the least, as if nothing had grown.
// protocol: 10.24
TEST_F(Grants, who_is_beyond_the_least_takes_none_of_it_from_others) {
  grow(near_by);
  fill(near_by);
  ASSERT_EQ(near_by.outstanding(), kMost);
  for (std::uint64_t left = kLeast; left > 0; left -= kBlock) {
    EXPECT_FALSE(other.fits(kBlock));
    near_by.settle(kBlock);
    ASSERT_TRUE(other.fits(kBlock)) << "what comes first is free for others";
    other.grant(kBlock);
  }
  EXPECT_EQ(other.outstanding(), kLeast);
}

// protocol: 10.24
TEST_F(Grants, what_is_beyond_a_limit_that_shrinks_is_not_granted_again) {
  grow(near_by);
  fill(near_by);
  near_by.began(80 * kBlock, kSoon + 1);
  ASSERT_EQ(node.limit.bytes(), kMost - 10 * kBlock);
  for (int i = 0; i < 10; ++i) {
    near_by.settle(kBlock);
    EXPECT_FALSE(near_by.fits(kBlock)) << i;
  }
  near_by.settle(kBlock);
  EXPECT_TRUE(near_by.fits(kBlock));
}

// protocol: 10.24
TEST_F(Grants, after_a_loss_a_connection_has_no_more_than_the_least_and_takes_away_half_once) {
  grow(near_by);
  fill(near_by);
  near_by.lost(kSecond);
  near_by.lost(kSecond);
  EXPECT_EQ(node.limit.bytes(), kLeast + (kMost - kLeast) / 2);
  near_by.settle(kMost - kLeast);
  EXPECT_FALSE(near_by.fits(kBlock));
  EXPECT_EQ(node.beyond, 0U);
  near_by.settle(kBlock);
  EXPECT_TRUE(near_by.fits(kBlock));
}

// It may not have gone beyond the least, and connections that show little cost next to nothing.
// protocol: 10.24
TEST_F(Grants, who_has_shown_little_takes_nothing_from_the_limit) {
  grow(near_by);
  other.grant(kBlock);
  other.began(kBlock, kSoon);
  other.began(8 * kBlock, kSoon + 1);
  EXPECT_EQ(node.limit.bytes(), kMost) << "it comes late";
  other.began(kBlock, kSoon);
  other.lost(kSecond);
  EXPECT_EQ(node.limit.bytes(), kMost) << "it is lost";
}

// It carries more than the least before anything of it can come, and has a window for losses.
// protocol: 10.24
TEST_F(Grants, the_length_of_a_path_is_no_waiting_and_its_losses_take_nothing) {
  constexpr Time kLength = 2 * kSoon;
  auto& path = near_by.join(paths.find(MacAddr::from_u64(1), kBlock));
  path.arrived(kBlock, kLength, kSecond);
  grow(near_by, kLength + kSoon);
  EXPECT_EQ(node.limit.bytes(), kMost);
  near_by.lost(kSecond);
  EXPECT_EQ(node.limit.bytes(), kMost);
  fill(near_by);
  EXPECT_EQ(near_by.outstanding(), kMost);
  near_by.began(kBlock, kLength + kSoon + 1);
  EXPECT_LT(node.limit.bytes(), kMost);
}

// protocol: 10.12, 10.24
TEST_F(Grants, what_is_written_off_leaves_room_beyond_the_least_too) {
  grow(near_by);
  fill(near_by);
  ASSERT_TRUE(near_by.write_off(kMost));
  EXPECT_EQ(node.charged, 0U);
  EXPECT_EQ(node.beyond, 0U);
  near_by.arrived();
  EXPECT_EQ(node.charged, kMost);
  EXPECT_EQ(node.beyond, 0U) << "as one it is too large for that";
  near_by.settle(kMost);
  EXPECT_EQ(owner, 0U);
}

// protocol: 10.8, 10.24
TEST_F(Grants, short_stus_are_charged_like_the_longest_beyond_the_least_too) {
  GrantAccount of_short{node, owner, 3};
  grow(near_by);
  for (int i = 0; i < 1'000; ++i) {
    of_short.grant(kBlock);
    of_short.began(kBlock, kSoon);
  }
  of_short.settle(of_short.outstanding());
  fill(of_short);
  EXPECT_LE(node.charged, kMost);
  EXPECT_GT(node.charged, kMost - 16 * kBlock);
  of_short.settle(of_short.outstanding());
  EXPECT_EQ(node.charged, 0U);
  EXPECT_EQ(node.beyond, 0U);
}

}  // namespace
}  // namespace stp
