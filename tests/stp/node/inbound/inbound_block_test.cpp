// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace stp::test::inbound_block_test {
namespace {

constexpr Tiles kTiles{12, 10};
constexpr std::uint64_t kStu = 1'024, kStart = 100 * kStu;

// A Block may land on [start, end).
InboundBlock block_of(std::uint64_t start, std::uint64_t end) {
  InboundBlock block;
  block.start = start;
  block.end = block.whole_end = end;
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

namespace stp::test {
namespace {

using Check = StuMap::Check;

// protocol: 8.5
TEST(StuMap, a_block_is_complete_when_each_stu_up_to_its_last_has_come) {
  StuMap map(4);
  EXPECT_FALSE(map.completes(1, false));
  EXPECT_FALSE(map.completes(2, true));
  map.place(2, true);
  EXPECT_FALSE(map.complete());
  map.place(0, false);
  EXPECT_EQ(map.placed(), 2U);
  EXPECT_TRUE(map.completes(1, false));
  EXPECT_FALSE(map.complete());
  map.place(1, false);
  EXPECT_TRUE(map.complete());
}

TEST(StuMap, one_stu_may_be_a_block) {
  StuMap map(1);
  EXPECT_TRUE(map.completes(0, true));
  map.place(0, true);
  EXPECT_TRUE(map.complete());
}

// protocol: 8.8
TEST(StuMap, an_stu_that_came_is_a_duplicate) {
  StuMap map(4);
  EXPECT_EQ(map.check(1, false), Check::kNew);
  map.place(1, false);
  EXPECT_EQ(map.check(1, false), Check::kDuplicate);
  EXPECT_EQ(map.check(1, true), Check::kDuplicate);
  EXPECT_EQ(map.check(0, false), Check::kNew);
  EXPECT_EQ(map.check(2, false), Check::kNew);
}

// protocol: 8.5
TEST(StuMap, numbers_that_fit_neither_the_map_nor_what_came_are_impossible) {
  StuMap map(4);
  EXPECT_EQ(map.check(3, false), Check::kNew);
  EXPECT_EQ(map.check(4, false), Check::kImpossible);  // one past the end
  EXPECT_EQ(map.check(0xffffffff, true), Check::kImpossible);
  map.place(1, false);
  EXPECT_EQ(map.check(0, true), Check::kImpossible);  // a Last before one that came
  EXPECT_EQ(map.check(2, true), Check::kNew);
  map.place(2, true);
  EXPECT_EQ(map.check(3, false), Check::kImpossible);  // one after the Last
  EXPECT_EQ(map.check(0, true), Check::kImpossible);   // another Last
  EXPECT_EQ(map.check(0, false), Check::kNew);
  EXPECT_EQ(StuMap().check(0, true), Check::kImpossible);  // a map of nothing
}

// A map keeps up to 128 bits in itself: its borders, and those of words.
TEST(StuMap, finds_the_first_that_is_missing_at_every_border) {
  for (const std::uint32_t size : {1U, 63U, 64U, 65U, 127U, 128U, 129U, 192U, 65'535U}) {
    StuMap map(size);
    EXPECT_EQ(map.capacity(), size);
    for (std::uint32_t i = 0; i < size; ++i) {
      if (i < 200 || i + 3 > size) {
        ASSERT_EQ(map.first_missing(), i) << size;
      }
      map.place(i, i + 1 == size);
    }
    EXPECT_EQ(map.first_missing(), size);
    EXPECT_TRUE(map.complete()) << size;
  }
}

// protocol: 10.23
TEST(StuMap, tells_what_is_missing_from_the_first_on) {
  StuMap map(300);
  for (std::uint32_t i = 0; i < 300; ++i)
    if (i != 40 && i != 103 && i != 104 && i != 298 && i != 299) map.place(i, false);
  EXPECT_TRUE(map.placed_after(40));
  const auto missing = map.missing_from(40);
  for (std::uint32_t i = 0; i < wire::MissingStus::kMost; ++i)
    EXPECT_EQ(missing.contains(i), i == 0 || i == 63 || i == 64) << i;
  EXPECT_FALSE(map.placed_after(298)) << "all after it is missing";
  const auto end = map.missing_from(298);
  EXPECT_TRUE(end.contains(0) && end.contains(1));
  EXPECT_FALSE(end.contains(2)) << "the map has 300";
  const auto asked = map.missing_from(40, 104);
  EXPECT_TRUE(asked.contains(0) && asked.contains(63));
  EXPECT_FALSE(asked.contains(64)) << "it has not been asked for";
}

TEST(StuMap, one_that_is_reset_serves_another_block) {
  for (const std::uint32_t size : {3U, 128U, 300U}) {
    StuMap map(size);
    for (std::uint32_t i = 0; i < size; ++i) map.place(i, i + 1 == size);
    map.reset();
    EXPECT_EQ(map.placed(), 0U);
    EXPECT_FALSE(map.complete());
    EXPECT_EQ(map.first_missing(), 0U);
    for (std::uint32_t i = 0; i < size; ++i)
      ASSERT_EQ(map.check(i, false), Check::kNew) << i << " of " << size;
  }
}

TEST(StuMap, only_a_large_one_takes_memory_of_its_own) {
  EXPECT_EQ(StuMap::footprint(1), 0U);
  EXPECT_EQ(StuMap::footprint(128), 0U);
  EXPECT_EQ(StuMap::footprint(129), 3 * 8U);
  EXPECT_EQ(StuMap::footprint(65'535), 8'192U);
}

Bytes bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}
std::string_view text(const HeldEnd& end) {
  return {reinterpret_cast<const char*>(end.bytes), end.size};
}
HeldEnd end_of(std::string_view stu, std::uint64_t address) {
  HeldEnd end;
  end.keep(bytes(stu), address);
  return end;
}

// protocol: 8.15
TEST(HeldEnd, keeps_the_last_eight_bytes_and_says_what_is_before) {
  HeldEnd end;
  EXPECT_EQ(end.keep(bytes("0123456789"), 1'000), 2U);
  EXPECT_EQ(text(end), "23456789");
  EXPECT_EQ(end.address, 1'002U);
  EXPECT_EQ(end.keep(bytes("abc"), 50), 0U);
  EXPECT_EQ(text(end), "abc");
  EXPECT_EQ(end.address, 50U);
  EXPECT_EQ(end.keep({}, 50), 0U);
  EXPECT_EQ(end.size, 0U);
}

class HeldEndsTest : public ::testing::Test {
 protected:
  HeldEnds ends;
  void SetUp() override { ASSERT_TRUE(ends.make_room(128)); }
};

// protocol: 8.15
TEST_F(HeldEndsTest, each_block_gets_its_own_back_once) {
  EXPECT_TRUE(ends.empty());
  ends.hold(1, end_of("11111111", 100));
  ends.hold(2, end_of("22222222", 100));  // at the same place
  ends.hold(3, {});                       // nothing to hold
  EXPECT_FALSE(ends.empty());
  EXPECT_EQ(text(ends.take(2)), "22222222");
  EXPECT_EQ(ends.take(2).size, 0U);
  EXPECT_EQ(ends.take(3).size, 0U);
  EXPECT_EQ(text(ends.take(1)), "11111111");
  EXPECT_TRUE(ends.empty());
}

// protocol: 8.15
TEST_F(HeldEndsTest, a_later_block_writes_over_what_an_earlier_one_holds) {
  ends.hold(1, end_of("aaaaaaaa", 100));
  ends.overwrite(2, 104, bytes("XXXXXX"));   // its second half
  ends.overwrite(2, 94, bytes("YYYYYYYY"));  // its first two bytes
  ends.overwrite(2, 108, bytes("Z"));        // just after
  ends.overwrite(2, 99, bytes("Z"));         // just before
  EXPECT_EQ(text(ends.take(1)), "YYaaXXXX");
  ends.hold(1, end_of("aaaaaaaa", 100));
  ends.hold(3, end_of("cccccccc", 500));
  ends.overwrite(2, 90, bytes("............................"));
  EXPECT_EQ(ends.take(1).size, 0U) << "nothing of it is left";
  EXPECT_EQ(text(ends.take(3)), "cccccccc");
}

// protocol: 8.15
TEST_F(HeldEndsTest, an_earlier_block_does_not_write_over_what_a_later_one_holds) {
  ends.hold(5, end_of("55555555", 100));
  ends.overwrite(4, 100, bytes("XXXXXXXX"));
  ends.overwrite(5, 100, bytes("XXXXXXXX"));
  EXPECT_EQ(text(ends.take(5)), "55555555");
  ends.hold(0xffffffff, end_of("ffffffff", 100));  // Blocks are numbered modulo 2^32
  ends.overwrite(0, 100, bytes("0000"));
  EXPECT_EQ(text(ends.take(0xffffffff)), "0000ffff");
}

TEST_F(HeldEndsTest, a_write_over_too_many_of_them_is_not_to_be_made) {
  const auto most = static_cast<std::uint32_t>(HeldEnds::kMostMet);
  for (std::uint32_t b = 0; b < most; ++b) ends.hold(b, end_of("abcdefgh", 1'000 + 8 * b));
  EXPECT_TRUE(ends.may_overwrite(1'000, std::size_t{8} * most));
  ends.hold(most, end_of("abcdefgh", 1'000 + 8 * most));
  EXPECT_TRUE(ends.may_overwrite(1'000, std::size_t{8} * most));
  EXPECT_FALSE(ends.may_overwrite(1'000, std::size_t{8} * most + 1));
  EXPECT_FALSE(ends.may_overwrite(1'007, std::size_t{8} * most));
  EXPECT_TRUE(ends.may_overwrite(1'008, std::size_t{8} * most)) << "the first ends before it";
  EXPECT_TRUE(ends.may_overwrite(1'000, 0));
  EXPECT_TRUE(ends.may_overwrite(0, 8));
}

TEST(HeldEnds, room_is_made_once) {
  HeldEnds ends;
  ASSERT_TRUE(ends.make_room(8));
  ends.hold(1, end_of("abc", 1));
  ASSERT_TRUE(ends.make_room(8));
  EXPECT_EQ(text(ends.take(1)), "abc");
  EXPECT_EQ(HeldEnds().take(1).size, 0U) << "without room nothing is held";
}

}  // namespace
}  // namespace stp::test
