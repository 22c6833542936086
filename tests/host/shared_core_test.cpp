// SPDX-License-Identifier: BSD-3-Clause
#include "libst/os/shared_core.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "stp/types.h"

namespace stp::os {
namespace {

constexpr std::uint64_t kBegin = 1'000'000'000;
constexpr SharedCoreRule kUsual{};
constexpr auto kLate = kUsual.late_back + 1;

TEST(SharedCore, ALateYieldShowsItForAWhile) {
  SharedCore core;
  EXPECT_FALSE(core.is_shared(kBegin));
  const auto late = kBegin + kLate;
  core.yielded(kBegin, late - 1);
  EXPECT_FALSE(core.is_shared(late));
  core.yielded(kBegin, late);
  EXPECT_TRUE(core.is_shared(late + kUsual.holds - 1));
  EXPECT_FALSE(core.is_shared(late + kUsual.holds));
}

TEST(SharedCore, OneLateYieldMayBeAnAccident) {
  SharedCore core({.late_in_a_row = 2});
  core.yielded(kBegin, kBegin + kLate);
  EXPECT_FALSE(core.is_shared(kBegin + kLate));
  core.yielded(kBegin, kBegin + kUsual.late_back);
  core.yielded(kBegin, kBegin + kLate);
  EXPECT_FALSE(core.is_shared(kBegin + kLate)) << "nothing of the kind came before";
  core.yielded(kBegin, kBegin + kLate);
  EXPECT_TRUE(core.is_shared(kBegin + kLate));
  EXPECT_FALSE(core.is_shared(kBegin + kLate + kUsual.holds));
}

TEST(SharedCore, AYieldThatLastsASliceIsNoAccident) {
  SharedCore core({.late_in_a_row = 8});
  core.yielded(kBegin, kBegin + kUsual.long_away - 1);
  EXPECT_FALSE(core.is_shared(kBegin + kUsual.long_away));
  core.yielded(kBegin, kBegin);
  core.yielded(kBegin, kBegin + kUsual.long_away);
  EXPECT_TRUE(core.is_shared(kBegin + kUsual.long_away));
}

TEST(SharedCore, TheLongerItHasBeenSoTheLongerItHolds) {
  constexpr auto kLongest = 16 * kUsual.holds;
  SharedCore core({.longest = kLongest});
  auto now = kBegin;
  for (auto holds = kUsual.holds; holds < 4 * kLongest; holds *= 2) {
    const auto end = now + kLate;
    core.yielded(now, end);
    now = end + std::min(holds, kLongest);
    EXPECT_TRUE(core.is_shared(now - 1));
    EXPECT_FALSE(core.is_shared(now));
  }
  core.yielded(now, now);
  core.yielded(now, now + kLate);
  EXPECT_FALSE(core.is_shared(now + kLate + kUsual.holds)) << "as at first";
}

TEST(Absence, IsLongerEachTimeForWhoKeepsComing) {
  Absence absence(100 * kMicrosecond);
  for (const Time expected : {100, 200, 400, 800, 1'600, 2'000, 2'000})
    EXPECT_EQ(absence.prolong(), expected * kMicrosecond);
}

TEST(Absence, IsShorterWhereTheThreadIsReliedOn) {
  Absence absence(100 * kMicrosecond);
  absence.prolong();
  absence.end(true);
  EXPECT_EQ(absence.prolong(), 20 * kMicrosecond);
  EXPECT_EQ(absence.prolong(), 40 * kMicrosecond);
}

TEST(Absence, IsShortAgainAfterTheProgramStayedAway) {
  Absence absence(200 * kMicrosecond);
  for (int i = 0; i < 10; ++i) absence.prolong();
  absence.end();
  EXPECT_EQ(absence.prolong(), 200 * kMicrosecond);
  EXPECT_EQ(absence.prolong(), 400 * kMicrosecond);
}

}  // namespace
}  // namespace stp::os
