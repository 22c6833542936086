// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/grant_window.h"

#include <gtest/gtest.h>

namespace stp::files {
namespace {

using std::chrono::milliseconds;

class GrantWindowTest : public ::testing::Test {
 protected:
  // Grants what may be granted now, and tells which Blocks that were.
  std::vector<std::uint32_t> grant_all(GrantWindow& window) {
    std::vector<std::uint32_t> blocks;
    while (auto const block = window.next_grant(now_)) {
      window.granted(*block, now_);
      blocks.push_back(*block);
    }
    return blocks;
  }
  using Blocks = std::vector<std::uint32_t>;

  Time now_{milliseconds(1)};
};

TEST_F(GrantWindowTest, grants_are_bounded_by_the_buffers) {
  GrantWindow window(100, 4);
  EXPECT_EQ(grant_all(window), (Blocks{0, 1, 2, 3}));
  EXPECT_TRUE(window.complete(1, now_));
  EXPECT_EQ(grant_all(window), Blocks{});  // Block 4 would land in Block 0's buffer
  EXPECT_TRUE(window.complete(0, now_));
  EXPECT_TRUE(window.ready());
  window.used();
  EXPECT_EQ(grant_all(window), Blocks{4});
}

TEST_F(GrantWindowTest, grants_are_bounded_by_what_may_be_under_way) {
  GrantWindow window(100, 32);
  window.set_limit(2);
  EXPECT_EQ(grant_all(window), (Blocks{0, 1}));
  window.complete(1, now_);
  EXPECT_EQ(grant_all(window), Blocks{2});
}

TEST_F(GrantWindowTest, blocks_are_used_in_order_however_they_complete) {
  GrantWindow window(3, 4);
  grant_all(window);
  window.complete(2, now_);
  window.complete(1, now_);
  EXPECT_FALSE(window.ready());
  window.complete(0, now_);
  for (std::uint32_t block = 0; block < 3; ++block) {
    ASSERT_TRUE(window.ready());
    EXPECT_EQ(window.first(), block);
    window.used();
  }
  EXPECT_TRUE(window.done());
}

TEST_F(GrantWindowTest, a_block_counts_once_and_only_when_granted) {
  GrantWindow window(10, 4);
  EXPECT_FALSE(window.complete(0, now_));
  grant_all(window);
  EXPECT_TRUE(window.complete(0, now_));
  EXPECT_FALSE(window.complete(0, now_));
  EXPECT_FALSE(window.complete(4, now_));
  window.used();
  EXPECT_FALSE(window.complete(0, now_));
}

TEST_F(GrantWindowTest, a_lost_block_is_asked_for_again_after_the_timeout_and_not_before) {
  GrantWindow window(1, 4);
  grant_all(window);
  EXPECT_EQ(window.next_deadline(), now_ + GrantWindow::kFirstTimeout);
  now_ += GrantWindow::kFirstTimeout - milliseconds(1);
  EXPECT_EQ(grant_all(window), Blocks{});
  now_ += milliseconds(1);
  EXPECT_EQ(grant_all(window), Blocks{0});
  EXPECT_EQ(window.repeats(), 1U);
}

TEST_F(GrantWindowTest, repeats_of_one_block_are_ever_further_apart) {
  GrantWindow window(1, 4);
  grant_all(window);
  auto last = Duration::zero();
  for (int i = 0; i < 20; ++i) {
    auto const wait = window.next_deadline() - now_;
    EXPECT_TRUE(wait > last || wait == GrantWindow::kMaxTimeout);
    last = wait;
    now_ = window.next_deadline();
    ASSERT_EQ(grant_all(window), Blocks{0});
  }
  EXPECT_EQ(last, GrantWindow::kMaxTimeout);
}

TEST_F(GrantWindowTest, a_block_that_later_ones_overtook_is_asked_for_at_once) {
  GrantWindow window(4, 4);
  grant_all(window);
  window.complete(1, now_);
  EXPECT_EQ(grant_all(window), Blocks{});
  window.complete(2, now_);
  EXPECT_EQ(grant_all(window), Blocks{0});
  // Its repeat is the youngest grant now: Block 3 came before it.
  window.complete(3, now_);
  EXPECT_EQ(grant_all(window), Blocks{});
}

TEST_F(GrantWindowTest, one_needless_repeat_does_not_bring_about_others) {
  GrantWindow window(100, 8);
  grant_all(window);
  now_ += milliseconds(10);
  window.complete(0, now_);
  window.ask_again();
  EXPECT_EQ(grant_all(window), Blocks{1});
  for (std::uint32_t block = 1; block < 8; ++block) {
    now_ += milliseconds(1);
    window.complete(block, now_);
    EXPECT_EQ(grant_all(window), Blocks{}) << block;
  }
}

TEST_F(GrantWindowTest, repeats_that_overtake_a_repeat_tell_that_it_was_lost_too) {
  GrantWindow window(8, 8);
  grant_all(window);
  now_ += GrantWindow::kFirstTimeout;
  EXPECT_EQ(grant_all(window).size(), 8U);
  now_ += milliseconds(10);
  window.complete(1, now_);
  window.complete(2, now_);
  EXPECT_EQ(grant_all(window), Blocks{0});
}

TEST_F(GrantWindowTest, nothing_is_late_while_blocks_keep_coming) {
  GrantWindow window(100, 8);
  grant_all(window);
  for (std::uint32_t block = 0; block < 8; ++block) {
    now_ += GrantWindow::kFirstTimeout / 2;
    window.complete(block, now_);
    EXPECT_EQ(grant_all(window), Blocks{}) << block;
  }
}

TEST_F(GrantWindowTest, the_timeout_follows_the_link) {
  GrantWindow window(1000, 1);
  auto const complete_after = [&](Duration time) {
    grant_all(window);
    now_ += time;
    window.complete(window.first(), now_);
    window.used();
  };
  for (int i = 0; i < 50; ++i) complete_after(milliseconds(1));
  grant_all(window);
  EXPECT_EQ(window.next_deadline(), now_ + GrantWindow::kMinTimeout);
  for (int i = 0; i < 50; ++i) complete_after(milliseconds(100));
  grant_all(window);
  EXPECT_GT(window.next_deadline(), now_ + milliseconds(90));
}

TEST_F(GrantWindowTest, a_sender_that_missed_the_grants_gets_one_again) {
  GrantWindow window(8, 4);
  grant_all(window);
  window.ask_again();
  EXPECT_EQ(grant_all(window), Blocks{0});
}

}  // namespace
}  // namespace stp::files
