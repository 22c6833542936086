// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/mx_records.h"

#include <gtest/gtest.h>

namespace stp::service {
namespace {

constexpr RegionId kRegion = 5, kOtherRegion = 6;
constexpr VcId kVc = 8, kOtherVc = 9;

class MxRecordsTest : public testing::Test {
 protected:
  void add(std::uint16_t mx, RegionId region, VcId vc = kNoneId) {
    records.add(mx, {.region = region, .vc = vc, .place = {}, .one = {use.mxs, 1}});
  }

  ProgramUse use;
  MxRecords records;
};

TEST_F(MxRecordsTest, AnMxIsOfItsRegionAndOfTheConnectionThatAloneMayUseIt) {
  add(1, kRegion, kVc);
  add(2, kRegion);
  add(3, kOtherRegion, kVc);
  EXPECT_EQ(records.count_of_region(kRegion), 2U);
  EXPECT_EQ(records.count_of_region(kOtherRegion), 1U);
  EXPECT_EQ(records.count_of_connection(kVc), 2U);
  EXPECT_EQ(records.count_of_connection(kOtherVc), 0U);
  // An Mx for all connections is not one of the connection "none".
  EXPECT_EQ(records.count_of_connection(kNoneId), 0U);
}

TEST_F(MxRecordsTest, ARemovedOneIsCountedNowhere) {
  add(1, kRegion, kVc);
  EXPECT_EQ(use.mxs, 1U);
  records.remove(1);
  EXPECT_TRUE(records.empty());
  EXPECT_EQ(use.mxs, 0U);
  EXPECT_EQ(records.count_of_region(kRegion), 0U);
  EXPECT_EQ(records.count_of_connection(kVc), 0U);
  records.remove(1);  // no harm
}

TEST_F(MxRecordsTest, TheMxOfARegionGoOneByOne) {
  for (std::uint16_t mx = 0; mx < 10; ++mx) add(mx, kRegion, mx % 2 == 0 ? kVc : kNoneId);
  add(10, kOtherRegion, kVc);
  for (std::size_t left = 10; left > 0; --left) {
    EXPECT_EQ(records.count_of_region(kRegion), left);
    EXPECT_EQ(use.mxs, left + 1);
    EXPECT_TRUE(records.remove_one_of_region(kRegion));
  }
  EXPECT_FALSE(records.remove_one_of_region(kRegion));
  EXPECT_EQ(records.count_of_connection(kVc), 1U);
  EXPECT_EQ(records.count_of_region(kOtherRegion), 1U);
}

TEST_F(MxRecordsTest, TheMxOfAConnectionGoOneByOne) {
  add(1, kRegion, kVc);
  add(2, kOtherRegion, kVc);
  add(3, kRegion, kOtherVc);
  EXPECT_TRUE(records.remove_one_of_connection(kVc));
  EXPECT_TRUE(records.remove_one_of_connection(kVc));
  EXPECT_FALSE(records.remove_one_of_connection(kVc));
  EXPECT_EQ(records.count_of_region(kRegion), 1U);
  EXPECT_EQ(records.count_of_connection(kOtherVc), 1U);
}

// The Node gives the number of an ended Mx to another region before its record is removed.
TEST_F(MxRecordsTest, TheRecordOfAnEndedMxIsReplacedAndNotFoundUnderItsFirstRegion) {
  add(1, kRegion, kVc);
  add(1, kOtherRegion, kOtherVc);
  EXPECT_EQ(use.mxs, 1U);
  EXPECT_FALSE(records.remove_one_of_region(kRegion));
  EXPECT_FALSE(records.remove_one_of_connection(kVc));
  EXPECT_EQ(records.count_of_region(kOtherRegion), 1U);
  EXPECT_EQ(records.count_of_connection(kOtherVc), 1U);
}

}  // namespace
}  // namespace stp::service
