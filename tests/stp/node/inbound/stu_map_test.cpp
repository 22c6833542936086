// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/stu_map.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stp::test
