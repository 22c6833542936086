// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/open_blocks.h"

#include <gtest/gtest.h>

#include <array>

namespace stp::test {
namespace {

class OpenBlocksTest : public ::testing::Test {
 protected:
  InboundTransfer transfer, other;
  std::array<GrantedBlock, 3> blocks;
  OpenBlocks open;

  void SetUp() override {
    for (auto& block : blocks) block.transfer = &transfer;
    for (std::size_t i = 0; i < blocks.size(); ++i)
      open.granted(blocks[i], i == 0, static_cast<Time>(10 * (i + 1)));
  }
};

TEST_F(OpenBlocksTest, stand_in_the_order_of_their_grants) {
  EXPECT_EQ(open.count(), 3U);
  EXPECT_EQ(open.first(), &blocks[0]);
  EXPECT_EQ(open.after(blocks[0]), &blocks[1]);
  EXPECT_EQ(open.after(blocks[2]), nullptr);
  EXPECT_EQ(open.silent_since(), 10);  // later grants do not end the silence
}

// protocol: 10.14
TEST_F(OpenBlocksTest, those_before_the_latest_that_has_come_are_overtaken) {
  EXPECT_FALSE(open.overtaken(blocks[0]));
  EXPECT_FALSE(open.arrived(blocks[1], false, 5, 50));
  EXPECT_TRUE(open.overtaken(blocks[0]));
  EXPECT_FALSE(open.overtaken(blocks[1]));
  EXPECT_FALSE(open.overtaken(blocks[2]));
  EXPECT_EQ(open.silent_since(), 50);
  open.grant_again(blocks[0]);  // the newest grant now
  EXPECT_FALSE(open.overtaken(blocks[0]));
  EXPECT_EQ(open.first(), &blocks[1]);
  EXPECT_EQ(open.after(blocks[2]), &blocks[0]);
}

// protocol: 10.14
TEST_F(OpenBlocksTest, a_repeat_shows_a_loss_where_the_sending_is_another_one) {
  ASSERT_FALSE(open.arrived(blocks[0], false, 5, 50));
  blocks[0].repeats = 1;
  EXPECT_FALSE(open.arrived(blocks[0], true, 5, 60));  // the first transmission: it was only late
  blocks[0].repeats = 1;
  EXPECT_TRUE(open.arrived(blocks[0], true, 6, 70));  // another transmission: the first had a loss
  EXPECT_EQ(blocks[0].repeats, 0U);
  blocks[2].repeats = 1;  // nothing of it had arrived, and nothing had overtaken it
  EXPECT_FALSE(open.arrived(blocks[2], false, 7, 80));
}

TEST_F(OpenBlocksTest, those_of_a_transfer_that_has_ended_are_passed_over) {
  blocks[1].transfer = &other;
  other.over = true;
  open.closed(1);
  EXPECT_EQ(open.count(), 2U);
  EXPECT_EQ(open.after(blocks[0]), &blocks[2]);
  EXPECT_FALSE(blocks[1].linked());
  open.clear();
  EXPECT_EQ(open.count(), 0U);
  EXPECT_EQ(open.first(), nullptr);
}

}  // namespace
}  // namespace stp::test
