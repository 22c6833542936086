// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound_transfer.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>

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

namespace stp::test::window_purse_test {
namespace {

constexpr std::uint64_t kStep = WindowPurse::kStep, kOwner = 7;

struct Budget : WindowBudget {
  bool hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) override {
    EXPECT_EQ(owner, kOwner);
    EXPECT_EQ(before, held) << "the purse says what it holds";
    ++calls;
    if (bytes > limit) return false;
    held = bytes;
    return true;
  }
  std::uint64_t limit = 10 * kStep, held = 0;
  unsigned calls = 0;
};

class WindowPurseTest : public ::testing::Test {
 protected:
  Budget budget;
  bool freed = false;
  std::optional<WindowPurse> purse{std::in_place, &budget, kOwner, freed};
};

// protocol: 7.19
TEST_F(WindowPurseTest, the_budget_is_asked_for_steps_not_for_each_block) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(purse->take(kStep / 100));
  EXPECT_EQ(budget.calls, 1U);
  EXPECT_EQ(budget.held, kStep);
  ASSERT_TRUE(purse->take(kStep));
  EXPECT_EQ(budget.held, 2 * kStep);
  EXPECT_EQ(purse->used(), kStep / 100 * 100 + kStep);
  purse->give(purse->used());
}

TEST_F(WindowPurseTest, what_is_left_of_a_step_serves_to_the_last_byte) {
  budget.limit = kStep + 10;
  ASSERT_TRUE(purse->take(kStep));
  EXPECT_TRUE(purse->has(10));
  EXPECT_FALSE(purse->is_short());
  EXPECT_FALSE(purse->has(11));
  EXPECT_TRUE(purse->is_short());
  EXPECT_FALSE(purse->take(11));
  EXPECT_EQ(purse->used(), kStep) << "what failed took nothing";
  EXPECT_TRUE(purse->take(10));
  purse->give(kStep + 10);
}

TEST_F(WindowPurseTest, more_than_a_step_that_is_not_used_goes_back) {
  ASSERT_TRUE(purse->take(4 * kStep));
  purse->give(kStep);
  EXPECT_EQ(budget.held, 4 * kStep) << "some is kept for the next";
  purse->give(kStep);
  EXPECT_EQ(budget.held, 2 * kStep);
  purse->give(2 * kStep);
  ASSERT_TRUE(purse->take(1));
  purse->give(1);
  EXPECT_EQ(budget.held, kStep);
  purse.reset();
  EXPECT_EQ(budget.held, 0U);
}

TEST_F(WindowPurseTest, who_waits_for_memory_is_told_when_some_is_freed) {
  ASSERT_TRUE(purse->take(budget.limit));
  purse->give(1);
  EXPECT_FALSE(freed) << "nobody waits";
  ASSERT_FALSE(purse->has(2));
  purse->give(1);
  EXPECT_TRUE(freed);
  purse->give(budget.limit - 2);
}

TEST_F(WindowPurseTest, without_a_budget_there_is_no_limit) {
  WindowPurse unlimited(nullptr, kOwner, freed);
  ASSERT_TRUE(unlimited.take(~std::uint64_t{0}));
  EXPECT_FALSE(unlimited.is_short());
  unlimited.give(~std::uint64_t{0});
}

// protocol: 7.19
TEST_F(WindowPurseTest, bytes_go_back_to_their_purse_when_their_holder_ends) {
  {
    WindowBytes bytes;
    ASSERT_TRUE(bytes.add(&*purse, 100));
    ASSERT_TRUE(bytes.add(&*purse, 50));
    bytes.give(30);
    EXPECT_EQ(purse->used(), 120U);
    WindowBytes moved(std::move(bytes));
    bytes.reset();
    EXPECT_EQ(purse->used(), 120U) << "they are another one's";
    WindowBytes third;
    ASSERT_TRUE(third.add(&*purse, 1));
    third = std::move(moved);
    EXPECT_FALSE(third.add(&*purse, budget.limit));
    EXPECT_EQ(purse->used(), 121U);
  }
  EXPECT_EQ(purse->used(), 0U);
}

}  // namespace
}  // namespace stp::test::window_purse_test

namespace stp::test {
namespace {

constexpr std::uint32_t kBlocks = 10;
constexpr std::size_t kRemainsSlice = 4;

// A Transfer of kBlocks Blocks that are granted, in `table`.
InboundTransfer& add(TransferTable& table, std::uint32_t r_id) {
  auto& transfer = table.begin(r_id, r_id, 1'000);
  for (std::uint32_t b = 0; b < kBlocks; ++b) transfer.blocks[b].transfer = &transfer;
  return transfer;
}

TEST(InboundRemains, go_in_slices_as_long_as_they_are_asked_to) {
  TransferTable table;
  InboundRemains remains;
  EXPECT_TRUE(remains.empty());
  remains.add(table.take(add(table, 1)));
  add(table, 2);
  add(table, 3);
  remains.add(table.take_all());
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_EQ(table.find(2), nullptr);
  std::size_t pieces = 0, slices = 0;
  while (!remains.empty()) {
    const auto done = remains.dismantle(kRemainsSlice);
    EXPECT_LE(done, kRemainsSlice);
    pieces += done;
    ASSERT_LT(++slices, 100U);
  }
  const auto all = 3 * (kBlocks + 1);  // a Transfer counts, too
  EXPECT_EQ(pieces, all);
  EXPECT_EQ(slices, (all + kRemainsSlice - 1) / kRemainsSlice);
  EXPECT_EQ(remains.dismantle(kRemainsSlice), 0U);
}

}  // namespace
}  // namespace stp::test
