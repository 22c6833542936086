// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound_transfer.h"

#include <gtest/gtest.h>

namespace stp::test {
namespace {

constexpr std::uint32_t kTableSize = TransferTable::kMost;
constexpr auto kUnknown = InboundTransfer::kUnknownLength;

// protocol: 9.8
TEST(InboundTransfer, an_empty_one_is_a_block_too) {
  InboundTransfer transfer;
  transfer.blocksize = 10;
  EXPECT_EQ(transfer.block_count(), 1U);
  for (const auto& [t_len, count] : {std::pair{1U, 1U}, {1'024U, 1U}, {1'025U, 2U}}) {
    transfer.t_len = t_len;
    EXPECT_EQ(transfer.block_count(), count) << t_len;
  }
}

// protocol: 9.6
TEST(InboundTransfer, b_seq_is_the_first_block_that_is_incomplete) {
  InboundTransfer transfer;
  transfer.blocksize = 10;
  transfer.t_len = 4 * 1'024;
  transfer.complete(2);
  transfer.complete(1);
  EXPECT_EQ(transfer.b_seq, 0U);
  EXPECT_TRUE(transfer.has(2));
  EXPECT_FALSE(transfer.has(0));
  transfer.complete(0);
  EXPECT_EQ(transfer.b_seq, 3U);
  EXPECT_FALSE(transfer.finished());
  transfer.complete(3);
  EXPECT_TRUE(transfer.finished());
  transfer.t_len = kUnknown;
  EXPECT_FALSE(transfer.finished());
}

TEST(InboundTransfer, the_blocks_of_a_region_are_numbered_without_end) {
  InboundTransfer region;
  region.region = true;
  region.b_seq = 0xfffffffe;
  EXPECT_TRUE(region.has(0xfffffffd));
  EXPECT_FALSE(region.has(1));
  for (const std::uint32_t b : {0U, 0xffffffffU, 0xfffffffeU}) region.complete(b);
  EXPECT_EQ(region.b_seq, 1U);
  EXPECT_TRUE(region.has(0));
  EXPECT_FALSE(region.finished());
}

class Transfers : public ::testing::Test {
 protected:
  TransferTable table;

  // A Transfer of 4 KiB with `granted` Blocks of 1 KiB under way.
  InboundTransfer& begin(std::uint32_t id, std::uint32_t granted = 0, std::uint64_t t_len = 4'096) {
    auto& transfer = table.begin(id, 1'000 + id, t_len);
    transfer.blocksize = 10;
    for (std::uint32_t b = 0; b < granted; ++b) transfer.blocks[b].transfer = &transfer;
    return transfer;
  }
};

TEST_F(Transfers, are_found_by_the_names_of_both_sides) {
  begin(1, 1);
  begin(2);
  table.add_region(3).i_id = 1'003;
  std::uint32_t r_id = 0;
  ASSERT_NE(table.find(2), nullptr);
  EXPECT_EQ(table.find(2)->r_id, 2U);
  EXPECT_EQ(table.find(4), nullptr);
  EXPECT_TRUE(table.find_initiated(1'001, r_id));
  EXPECT_EQ(r_id, 1U);
  EXPECT_FALSE(table.find_initiated(1'002, r_id)) << "no Block of it is open";
  EXPECT_TRUE(table.find_initiated(1'003, r_id));
  EXPECT_EQ(r_id, 3U);
}

TEST_F(Transfers, of_two_that_the_peer_gave_one_name_the_later_is_found) {
  begin(1, 1).i_id = 9;
  begin(2, 1).i_id = 9;
  std::uint32_t r_id = 0;
  ASSERT_TRUE(table.find_initiated(9, r_id));
  EXPECT_EQ(r_id, 2U);
}

TEST_F(Transfers, what_is_taken_is_found_no_more_and_keeps_its_memory) {
  begin(1, 2);
  begin(2);
  ASSERT_NE(table.find(1), nullptr);  // found last
  auto taken = table.take(*table.find(1));
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_TRUE(taken.mapped().over);
  EXPECT_EQ(taken.mapped().blocks.size(), 2U);
  EXPECT_FALSE(table.under_way(1'001, 4'096));
  EXPECT_TRUE(table.under_way(1'002, 4'096));
  EXPECT_EQ(table.take_all().size(), 1U);
  EXPECT_EQ(table.find(2), nullptr);
  EXPECT_FALSE(table.under_way(1'002, 4'096));
  std::uint32_t r_id = 0;
  EXPECT_FALSE(table.find_initiated(1'002, r_id));
}

TEST_F(Transfers, one_is_under_way_until_its_last_block_is_complete) {
  auto& transfer = begin(1);
  EXPECT_TRUE(table.under_way(1'001, 4'096));
  EXPECT_FALSE(table.under_way(1'001, 4'095));
  table.finished(transfer);
  table.finished(transfer);
  EXPECT_FALSE(table.under_way(1'001, 4'096));
}

// protocol: 7.14
TEST_F(Transfers, for_a_new_one_the_oldest_without_an_open_block_is_forgotten) {
  begin(0, 1);  // its Block is open
  table.add_region(1);
  for (std::uint32_t id = 2; id < kTableSize; ++id) {
    ASSERT_TRUE(table.make_room());
    begin(id);
  }
  ASSERT_NE(table.find(2), nullptr);
  EXPECT_TRUE(table.make_room());
  EXPECT_EQ(table.find(2), nullptr);
  EXPECT_NE(table.find(0), nullptr);
  EXPECT_NE(table.find(1), nullptr);
  EXPECT_NE(table.find(3), nullptr);
}

// protocol: 7.14
TEST_F(Transfers, if_all_have_open_blocks_there_is_no_room) {
  for (std::uint32_t id = 0; id < kTableSize; ++id) {
    ASSERT_TRUE(table.make_room());
    begin(id, 1);
  }
  EXPECT_FALSE(table.make_room());
  EXPECT_FALSE(table.forget_oldest());
  table.find(7)->blocks.clear();
  EXPECT_FALSE(table.forget_oldest(table.find(7)));
  EXPECT_TRUE(table.make_room());
  EXPECT_EQ(table.find(7), nullptr);
}

// Forgotten, one that has begun would begin at its first Block again and never end.
TEST_F(Transfers, one_that_is_half_done_is_forgotten_only_for_another) {
  begin(1).complete(0);
  begin(2).complete(2);
  begin(3, 0, kUnknown).complete(0);
  EXPECT_TRUE(table.forget_oldest());  // it has no end that could fail to come
  EXPECT_EQ(table.find(3), nullptr);
  EXPECT_FALSE(table.forget_oldest());
  EXPECT_TRUE(table.forget_oldest(nullptr, true));
  EXPECT_EQ(table.find(1), nullptr);
  table.finished(*table.find(2));
  EXPECT_TRUE(table.forget_oldest());
  EXPECT_EQ(table.find(2), nullptr);
  EXPECT_FALSE(table.forget_oldest(nullptr, true));
}

}  // namespace
}  // namespace stp::test
