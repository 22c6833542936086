// SPDX-License-Identifier: BSD-3-Clause
// The libst document, section 11: miscellaneous.
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

TEST(Section11, TheDifferenceOfTwoTimesIsTheSecondsBetweenThem) {
  const auto first = st_time();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto elapsed = st_time() - first;
  EXPECT_GE(elapsed, 0.02);
  EXPECT_LT(elapsed, 20.0);
}

TEST(Section11, VersionIsAStringForPeople) {
  ASSERT_NE(st_version(), nullptr);
  EXPECT_GT(std::strlen(st_version()), 0u);
  EXPECT_STREQ(st_version(), st_version());
}

}  // namespace
}  // namespace stp::test
