// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/unscheduled.h"

#include <gtest/gtest.h>

namespace stp::test::unscheduled_test {
namespace {

constexpr unsigned kBufsize = 12, kStuLog2 = 10;
constexpr std::uint32_t kStu = 1'024, kMx = 5, kBufx = 16;
constexpr UnscheduledBlocks::Bounds kBounds{kBufx, 4};
constexpr auto kMemory = UnscheduledBlocks::kMemory;
constexpr auto kPatience = UnscheduledBlocks::kPatience;

class Unscheduled : public ::testing::Test {
 protected:
  UnscheduledBlocks blocks{kBufsize, kStuLog2};
  InboundBlock* block = nullptr;

  static wire::Header stu(std::uint32_t b_num, std::uint16_t number, bool last,
                          std::uint32_t bufx = kBufx) {
    auto header = wire::to_header(wire::Data{.stu_num = number,
                                             .r_mx = kMx,
                                             .r_bufx = bufx,
                                             .r_offset = number * kStu,
                                             .b_num = b_num,
                                             .r_id = 3},
                                  last ? wire::flag::kLast : std::uint16_t{0});
    header.s_port = 9;
    return header;
  }
  static BlockName name_of(const wire::Header& header, std::uint64_t from = 0x020000000001) {
    return BlockName::of(MacAddr::from_u64(from), wire::DataView(header));
  }
  DropReason find(const wire::Header& header, Time now, std::uint64_t from = 0x020000000001) {
    return blocks.find(name_of(header, from), wire::DataView(header), kStu, kBounds, now, block);
  }
  // An STU arrives and is placed.
  DropReason arrives(const wire::Header& header, Time now, std::uint64_t from = 0x020000000001) {
    const auto drop = find(header, now, from);
    if (drop != DropReason::kNone) return drop;
    const wire::DataView data(header);
    const bool last = data.has(wire::flag::kLast);
    const bool completes = block->stus.completes(data.stu_num(), last);
    block->stus.place(data.stu_num(), last);
    UnscheduledBlocks::progress(*block, now);
    if (completes) blocks.complete(name_of(header, from), now);
    return drop;
  }
};

TEST(BlockName, is_of_one_station_port_operation_and_number) {
  auto header = wire::to_header(wire::Data{.b_num = 1, .r_id = 3});
  header.s_port = 9;
  const auto mac = MacAddr::from_u64(0x020000000001);
  const auto name = BlockName::of(mac, wire::DataView(header));
  EXPECT_EQ(BlockName::of(mac, wire::DataView(header)), name);
  EXPECT_NE(BlockName::of(MacAddr::from_u64(0x020000000002), wire::DataView(header)), name);
  for (const auto change : {0, 1, 2}) {
    auto other = header;
    if (change == 0) other.s_port = 10;
    if (change == 1) other = wire::to_header(wire::Data{.b_num = 2, .r_id = 3});
    if (change == 2) other = wire::to_header(wire::Data{.b_num = 1, .r_id = 4});
    if (change != 0) other.s_port = 9;
    EXPECT_NE(BlockName::of(mac, wire::DataView(other)), name) << change;
  }
}

// protocol: 11.6
TEST_F(Unscheduled, the_stus_of_a_block_find_each_other_among_those_of_others) {
  EXPECT_EQ(arrives(stu(1, 1, true), 0), DropReason::kNone);
  EXPECT_EQ(arrives(stu(1, 1, true), 0, 0x020000000002), DropReason::kNone);
  EXPECT_EQ(arrives(stu(2, 0, false), 0), DropReason::kNone);
  EXPECT_EQ(arrives(stu(1, 1, true), 0), DropReason::kDuplicateStu);
  EXPECT_EQ(arrives(stu(1, 0, false), 0), DropReason::kNone);
  EXPECT_EQ(arrives(stu(1, 0, false), 0), DropReason::kDuplicateBlock);
  EXPECT_EQ(arrives(stu(1, 0, false), 0, 0x020000000002), DropReason::kNone);
  EXPECT_EQ(blocks.abandoned(), 0U);
}

// protocol: 11.6
TEST_F(Unscheduled, all_stus_of_a_block_land_in_the_mx_of_the_first) {
  EXPECT_EQ(arrives(stu(1, 0, false, kBufx + 4), 0), DropReason::kOutsideGrant);
  EXPECT_EQ(arrives(stu(1, 0, false, kBufx - 1), 0), DropReason::kOutsideGrant);
  EXPECT_EQ(arrives(stu(1, 0, false, kBufx + 3), 0), DropReason::kNone);
  auto other = stu(1, 1, true, kBufx + 3);
  other.mx = kMx + 1;
  EXPECT_EQ(arrives(other, 0), DropReason::kOutsideGrant);
  EXPECT_EQ(arrives(stu(1, 1, true, kBufx + 3), 0), DropReason::kNone);
}

// protocol: 11.7
TEST_F(Unscheduled, a_complete_block_is_a_duplicate_for_a_while) {
  ASSERT_EQ(arrives(stu(1, 0, true), 0), DropReason::kNone);
  EXPECT_EQ(arrives(stu(1, 0, true), kMemory - 1), DropReason::kDuplicateBlock);
  EXPECT_EQ(arrives(stu(1, 0, true), kMemory), DropReason::kNone) << "another Block of that name";
}

// protocol: 11.3
TEST_F(Unscheduled, no_number_of_senders_takes_more_places) {
  std::size_t open = 0, full = 0;
  for (std::uint32_t b = 0; b < 8 * UnscheduledBlocks::kMaxOpen; ++b) {
    const auto drop = arrives(stu(b, 0, false), 0, 0x020000000000 + b % 100);
    ASSERT_TRUE(drop == DropReason::kNone || drop == DropReason::kBlocksFull);
    ++(drop == DropReason::kNone ? open : full);
  }
  EXPECT_EQ(open, UnscheduledBlocks::kMaxOpen);
  EXPECT_GT(full, 0U);
  EXPECT_EQ(blocks.abandoned(), 0U);
  // Those that are silent for long give their places away, the oldest first.
  const auto any = stu(1'000'000, 0, false);
  EXPECT_EQ(arrives(any, kPatience - 1), DropReason::kBlocksFull);
  EXPECT_EQ(arrives(any, kPatience), DropReason::kNone);
  EXPECT_EQ(blocks.abandoned(), 1U);
}

TEST_F(Unscheduled, an_old_block_whose_name_is_used_again_begins_anew) {
  ASSERT_EQ(arrives(stu(1, 0, false), 0), DropReason::kNone);
  EXPECT_EQ(find(stu(1, 0, false), kMemory - 1), DropReason::kDuplicateStu);
  EXPECT_EQ(arrives(stu(1, 0, false), kMemory), DropReason::kNone);
  EXPECT_EQ(blocks.abandoned(), 1U);
  EXPECT_EQ(block->stus.placed(), 1U);
}

TEST_F(Unscheduled, a_first_stu_that_is_wrong_takes_no_place) {
  for (std::uint32_t b = 0; b < 8 * UnscheduledBlocks::kMaxOpen; ++b)
    ASSERT_EQ(arrives(stu(b, 0, false, kBufx + 4), 0), DropReason::kOutsideGrant);
  EXPECT_EQ(arrives(stu(1, 0, false), 0), DropReason::kNone);
}

struct NoMemory : WindowBudget {
  bool hold(std::uint64_t, std::uint64_t before, std::uint64_t bytes) override {
    return bytes <= before;
  }
};

// protocol: 11.3
TEST(UnscheduledMemory, without_memory_for_its_map_a_large_block_is_dropped_and_a_small_one_not) {
  NoMemory budget;
  bool freed = false;
  UnscheduledBlocks blocks(kBufsize, kStuLog2, std::make_shared<WindowPurse>(&budget, 1, freed));
  constexpr UnscheduledBlocks::Bounds kLarge{0, 100};
  InboundBlock* block = nullptr;
  const auto find = [&](std::uint16_t flags) {
    const auto header = wire::to_header(wire::Data{.r_mx = kMx, .b_num = flags, .r_id = 3}, flags);
    const wire::DataView data(header);
    return blocks.find(BlockName::of(MacAddr::from_u64(2), data), data, kStu, kLarge, 0, block);
  };
  EXPECT_EQ(find(0), DropReason::kBlocksFull);
  EXPECT_EQ(find(wire::flag::kLast), DropReason::kNone);
}

}  // namespace
}  // namespace stp::test::unscheduled_test
