// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/send_window.h"

#include <gtest/gtest.h>

namespace stp::files {
namespace {

st_header_t cts(std::uint32_t block) {
  st_header_t header{};
  header.b_num = block;
  return header;
}

void load_all(SendWindow& window) {
  while (window.can_load()) window.loaded();
}

TEST(SendWindow, a_buffer_is_used_again_only_when_b_seq_covers_its_block) {
  SendWindow window(10, 4);
  load_all(window);
  EXPECT_EQ(window.next_load(), 4U);
  window.ask(cts(0));
  EXPECT_TRUE(window.answer().has_value());
  EXPECT_FALSE(window.can_load());
  EXPECT_TRUE(window.acknowledge(1));
  EXPECT_TRUE(window.can_load());
}

TEST(SendWindow, a_grant_waits_until_its_block_is_loaded) {
  SendWindow window(10, 4);
  EXPECT_TRUE(window.ask(cts(1)));
  EXPECT_FALSE(window.answer().has_value());
  window.loaded();
  EXPECT_FALSE(window.answer().has_value());
  window.loaded();
  ASSERT_TRUE(window.answer().has_value());
  EXPECT_FALSE(window.answer().has_value());
}

TEST(SendWindow, a_repeated_grant_is_answered_and_counted) {
  SendWindow window(10, 4);
  load_all(window);
  EXPECT_TRUE(window.ask(cts(0)));
  window.answer();
  EXPECT_FALSE(window.ask(cts(0)));
  EXPECT_TRUE(window.answer().has_value());
  EXPECT_EQ(window.repeats(), 1U);
}

TEST(SendWindow, two_grants_of_one_block_that_both_wait_are_one) {
  SendWindow window(10, 4);
  window.ask(cts(0));
  EXPECT_FALSE(window.ask(cts(0)));
  window.loaded();
  EXPECT_TRUE(window.answer().has_value());
  EXPECT_FALSE(window.answer().has_value());
}

TEST(SendWindow, grants_of_blocks_that_arrived_or_cannot_be_are_ignored) {
  SendWindow window(10, 4);
  load_all(window);
  window.ask(cts(1));
  window.acknowledge(2);
  EXPECT_FALSE(window.ask(cts(1)));
  EXPECT_FALSE(window.ask(cts(10)));
  EXPECT_FALSE(window.ask(cts(7)));
  EXPECT_FALSE(window.answer().has_value());
}

TEST(SendWindow, b_seq_never_goes_back_and_never_beyond_what_was_sent) {
  SendWindow window(4, 4);
  load_all(window);
  EXPECT_FALSE(window.acknowledge(5));
  EXPECT_TRUE(window.acknowledge(3));
  EXPECT_FALSE(window.acknowledge(2));
  EXPECT_FALSE(window.done());
  EXPECT_TRUE(window.acknowledge(4));
  EXPECT_TRUE(window.done());
}

TEST(SendWindow, a_buffer_whose_block_was_repeated_is_flushed_before_it_is_used_again) {
  SendWindow window(10, 2);
  load_all(window);
  for (int i = 0; i < 2; ++i) {
    window.ask(cts(0));
    window.answer();
  }
  window.ask(cts(1));
  window.answer();
  window.acknowledge(2);
  EXPECT_TRUE(window.flush_before_load());
  window.loaded();
  EXPECT_FALSE(window.flush_before_load());
}

}  // namespace
}  // namespace stp::files
