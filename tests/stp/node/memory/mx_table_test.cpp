// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/memory/mx_table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace stp::test {
namespace {

constexpr MxEntry kEntry{
    .region = 5, .first = 100, .count = 10, .endpoint = 1, .vc = 2, .permissions = 3};

class MxTableTest : public ::testing::Test {
 protected:
  MxTable table;
  RegionMxs region;
  VcMxs vc;

  int allocate(const MxEntry& entry = kEntry) { return table.allocate(entry, region, &vc); }
  std::uint16_t one() { return static_cast<std::uint16_t>(allocate()); }
};

// protocol: 7.3
TEST_F(MxTableTest, a_name_finds_what_it_was_given_for_until_it_is_freed) {
  EXPECT_EQ(table.find(0), nullptr);  // a header of zeros names nothing
  const auto mx = one();
  ASSERT_NE(mx, 0);
  ASSERT_NE(table.find(mx), nullptr);
  EXPECT_EQ(table.find(mx)->region, kEntry.region);
  EXPECT_EQ(table.find(mx)->permissions, kEntry.permissions);
  EXPECT_EQ(table.find(static_cast<std::uint16_t>(mx + 1)), nullptr);
  EXPECT_EQ(table.find(0xffff), nullptr);
  EXPECT_EQ(region.front().mx, mx);
  EXPECT_EQ(vc.front().mx, mx);
  table.free(mx);
  EXPECT_EQ(table.find(mx), nullptr);
  EXPECT_TRUE(region.empty());
  EXPECT_TRUE(vc.empty());
}

TEST(MxEntry, contains_its_own_buffers_only) {
  EXPECT_FALSE(kEntry.contains(99));
  EXPECT_TRUE(kEntry.contains(100));
  EXPECT_TRUE(kEntry.contains(109));
  EXPECT_FALSE(kEntry.contains(110));
  EXPECT_FALSE(kEntry.contains(0));
  EXPECT_FALSE(kEntry.contains(0xffffffff));
  // The last buffers there are.
  const MxEntry last{.first = 0xfffffff0, .count = 16};
  EXPECT_TRUE(last.contains(0xffffffff));
  EXPECT_FALSE(last.contains(0));
}

// protocol: 7.4
TEST_F(MxTableTest, a_freed_name_rests_before_it_is_given_out_again) {
  const auto first = one();
  table.free(first);
  for (int i = 0; i < 1'000; ++i) {
    const auto mx = one();
    ASSERT_NE(mx, first) << i;
    table.free(mx);
  }
  bool again = false;
  for (int i = 0; i < 100 && !again; ++i) {
    const auto mx = one();
    again = mx == first;
    table.free(mx);
  }
  EXPECT_TRUE(again) << "names are not used up";
}

TEST_F(MxTableTest, there_are_65535_names_and_each_is_one_users) {
  std::set<int> names;
  for (std::size_t i = 0; i < MxTable::kMost; ++i) names.insert(allocate());
  EXPECT_EQ(names.size(), MxTable::kMost);
  EXPECT_EQ(*names.begin(), 1);
  EXPECT_EQ(*names.rbegin(), 0xffff);
  EXPECT_EQ(allocate(), -ENOSPC);
  table.free(77);  // where there is no other, none rests
  EXPECT_EQ(allocate(), 77);
  EXPECT_EQ(allocate(), -ENOSPC);
}

TEST_F(MxTableTest, what_was_abandoned_is_freed_in_slices) {
  VcMxs other;
  for (int i = 0; i < 10; ++i) allocate();
  const auto kept = static_cast<std::uint16_t>(table.allocate(kEntry, region, &other));
  ASSERT_FALSE(table.untidy());
  table.abandon(vc);
  EXPECT_TRUE(vc.empty());
  EXPECT_TRUE(table.untidy());
  EXPECT_EQ(table.tidy(4), 4U);
  EXPECT_TRUE(table.untidy());
  EXPECT_EQ(table.tidy(100), 6U);
  EXPECT_FALSE(table.untidy());
  EXPECT_EQ(table.tidy(100), 0U);
  for (std::uint16_t mx = 1; mx <= 10; ++mx) EXPECT_EQ(table.find(mx), nullptr);
  ASSERT_NE(table.find(kept), nullptr) << "another connection's";
  table.abandon(region);
  EXPECT_EQ(table.tidy(100), 1U);
  EXPECT_EQ(table.find(kept), nullptr);
  EXPECT_TRUE(other.empty());
}

TEST_F(MxTableTest, where_names_run_out_an_abandoned_one_serves_at_once) {
  VcMxs other;
  const auto mx = table.allocate(kEntry, region, &other);
  for (std::size_t i = 1; i < MxTable::kMost; ++i) allocate();
  ASSERT_EQ(allocate(), -ENOSPC);
  table.abandon(other);
  EXPECT_EQ(allocate(), mx);
  EXPECT_FALSE(table.untidy());
}

}  // namespace
}  // namespace stp::test
