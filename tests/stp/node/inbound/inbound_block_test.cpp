// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound_block.h"

#include <gtest/gtest.h>

namespace stp::test::inbound_block_test {
namespace {

constexpr Tiles kTiles{12, 10};
constexpr std::uint64_t kStu = 1'024, kStart = 100 * kStu;

// A Block may land on [start, end).
InboundBlock block_of(std::uint64_t start, std::uint64_t end) {
  InboundBlock block;
  block.start = start;
  block.end = end;
  block.stus = StuMap(static_cast<std::uint32_t>(stu_count(start, end - start, kTiles.stu_log2)));
  return block;
}
InboundBlock granted(std::uint64_t start, std::uint64_t end) {
  auto block = block_of(start, end);
  block.first_address = start;
  block.first_tile = start / kStu;
  block.tile_known = true;
  block.exact = true;
  return block;
}
DropReason check(const InboundBlock& block, std::uint16_t number, std::uint64_t at,
                 std::uint64_t length, bool last = false) {
  const auto where = Address::from_linear(at, kTiles.bufsize);
  const auto header =
      wire::to_header(wire::Data{.stu_num = number, .r_bufx = where.bufx, .r_offset = where.offset},
                      last ? wire::flag::kLast : std::uint16_t{0});
  return block.check_stu(wire::DataView(header), length, kTiles);
}

// protocol: 8.6
TEST(InboundBlock, takes_the_stus_of_its_tiling_and_no_other) {
  const auto block = granted(kStart + 24, kStart + 3 * kStu);
  EXPECT_EQ(check(block, 0, kStart + 24, 1'000), DropReason::kNone);
  EXPECT_EQ(check(block, 1, kStart + kStu, kStu), DropReason::kNone);
  EXPECT_EQ(check(block, 2, kStart + 2 * kStu, kStu, true), DropReason::kNone);
  EXPECT_EQ(check(block, 0, kStart + 24, 999), DropReason::kBadStuNum);  // not to the end
  EXPECT_EQ(check(block, 0, kStart + 25, 999), DropReason::kBadStuNum);  // begins elsewhere
  EXPECT_EQ(check(block, 1, kStart + kStu + 1, 1'023), DropReason::kBadStuNum);
  EXPECT_EQ(check(block, 1, kStart + kStu, kStu + 1), DropReason::kBadStuNum);
  EXPECT_EQ(check(block, 1, kStart + 2 * kStu, kStu), DropReason::kBadStuNum);  // number 2's
  EXPECT_EQ(check(block, 1, kStart + kStu, 0, true), DropReason::kBadStuNum);
}

// protocol: 8.6
TEST(InboundBlock, nothing_lands_outside_of_what_was_granted) {
  const auto block = granted(kStart, kStart + kStu + 10);
  EXPECT_EQ(check(block, 0, kStart - 1, 1), DropReason::kOutsideGrant);
  EXPECT_EQ(check(block, 1, kStart + kStu, 10, true), DropReason::kNone);
  EXPECT_EQ(check(block, 1, kStart + kStu, 11, true), DropReason::kOutsideGrant);
  EXPECT_EQ(check(block, 1, kStart + kStu, 9, true), DropReason::kBadStuNum);  // ends too soon
  EXPECT_EQ(check(block, 0, kStart, kStu, true), DropReason::kBadStuNum);
}

// protocol: 8.6
TEST(InboundBlock, one_that_may_begin_anywhere_begins_where_its_first_stu_lands) {
  auto block = block_of(kStart, kStart + 8 * kStu);
  block.anywhere = true;
  EXPECT_EQ(check(block, 0, kStart + 3 * kStu + 5, 7, true), DropReason::kNone);
  EXPECT_EQ(check(block, 1, kStart + 4 * kStu, kStu), DropReason::kNone);
  EXPECT_EQ(check(block, 1, kStart + 4 * kStu, 0, true), DropReason::kBadStuNum);  // empty
  block.tile_known = true;  // an STU of it has come: number 1 at tile 4
  block.first_tile = kStart / kStu + 3;
  EXPECT_EQ(check(block, 0, kStart + 3 * kStu + 5, 1'019), DropReason::kNone);
  EXPECT_EQ(check(block, 0, kStart + 2 * kStu, kStu), DropReason::kBadStuNum);
  EXPECT_EQ(check(block, 2, kStart + 5 * kStu, kStu), DropReason::kNone);
  EXPECT_EQ(check(block, 2, kStart + 6 * kStu, kStu), DropReason::kBadStuNum);
}

TEST(InboundBlock, a_number_that_is_larger_than_its_tile_is_impossible) {
  auto block = block_of(0, 8 * kStu);
  block.anywhere = true;
  EXPECT_EQ(check(block, 2, 2 * kStu, kStu), DropReason::kNone);
  EXPECT_EQ(check(block, 3, 2 * kStu, kStu), DropReason::kBadStuNum);
}

// protocol: 8.8
TEST(InboundBlock, an_stu_that_came_is_a_duplicate) {
  auto block = granted(kStart, kStart + 3 * kStu);
  block.stus.place(1, false);
  EXPECT_EQ(check(block, 1, kStart + kStu, kStu), DropReason::kDuplicateStu);
  EXPECT_EQ(check(block, 0, kStart, kStu), DropReason::kNone);
}

// protocol: 9.5
TEST(InboundBlock, a_repeat_is_asked_for_from_the_first_byte_that_is_missing) {
  auto block = granted(kStart + 24, kStart + 3 * kStu);
  EXPECT_EQ(block.first_missing(kTiles), 0U);
  block.stus.place(1, false);
  EXPECT_EQ(block.first_missing(kTiles), 0U);
  block.stus.place(0, false);
  EXPECT_EQ(block.first_missing(kTiles), 2 * kStu - 24);
}

}  // namespace
}  // namespace stp::test::inbound_block_test
