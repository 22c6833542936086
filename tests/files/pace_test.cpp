// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/pace.h"

#include <gtest/gtest.h>

namespace stp::files {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kRate = 1'000'000;
const Pace::Clock::time_point kStart(seconds(1'000));

TEST(Pace, WithoutALimitNothingWaits) {
  Pace pace;
  pace.spend(std::uint64_t{1} << 40, kStart);
  EXPECT_EQ(pace.to_wait(kStart), Duration::zero());
}

TEST(Pace, WaitsAsLongAsTheBytesTake) {
  Pace pace(kRate);
  EXPECT_EQ(pace.to_wait(kStart), Duration::zero());
  pace.spend(kRate / 2, kStart);
  pace.spend(kRate / 2, kStart);
  EXPECT_EQ(pace.to_wait(kStart), seconds(1));
  EXPECT_EQ(pace.to_wait(kStart + milliseconds(900)), milliseconds(100));
  EXPECT_EQ(pace.to_wait(kStart + seconds(2)), Duration::zero());
}

TEST(Pace, APauseAllowsNoBurst) {
  Pace pace(kRate);
  pace.spend(kRate, kStart);
  const auto later = kStart + seconds(100);
  pace.spend(kRate, later);
  EXPECT_EQ(pace.to_wait(later), seconds(1));
}

}  // namespace
}  // namespace stp::files
