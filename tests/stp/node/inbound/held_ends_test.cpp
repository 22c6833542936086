// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/held_ends.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace stp::test {
namespace {

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
