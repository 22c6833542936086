// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/log.h"

#include <gtest/gtest.h>

namespace stp::stpd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Watchdog::Time kStart{};

bool alive() {
  return true;
}
bool dead() {
  return false;
}

TEST(StpdWatchdog, IsToldAtHalfOfItsInterval) {
  for (const auto interval : {milliseconds(2'000), milliseconds(3'000), milliseconds(30'000)}) {
    Watchdog watchdog(interval, kStart);
    EXPECT_EQ(watchdog.next(), kStart + interval / 2);
    EXPECT_FALSE(watchdog.is_due(kStart + interval / 2 - milliseconds(1), alive));
    EXPECT_TRUE(watchdog.is_due(kStart + interval / 2, alive));
    EXPECT_FALSE(watchdog.is_due(kStart + interval / 2 + milliseconds(1), alive));
    EXPECT_TRUE(watchdog.is_due(kStart + interval, alive));
  }
}

TEST(StpdWatchdog, OfAShortIntervalTakesNoSleepingThreadForAStuckOne) {
  Watchdog watchdog(seconds(1), kStart);
  Watchdog::Time looked = kStart;
  for (auto now = kStart; now < kStart + seconds(20); now = watchdog.next()) {
    watchdog.is_due(now, [&] {
      EXPECT_GE(now - looked, milliseconds(1500));
      looked = now;
      return true;
    });
  }
  EXPECT_GT(looked, kStart + seconds(10));
}

TEST(StpdWatchdog, IsNotToldWhileAThreadIsStuck) {
  for (const auto interval : {milliseconds(200), milliseconds(10'000)}) {
    Watchdog watchdog(interval, kStart);
    auto now = kStart;
    for (; now < kStart + seconds(5); now = watchdog.next()) watchdog.is_due(now, dead);
    EXPECT_FALSE(watchdog.is_due(now, dead)) << interval.count();
    for (; now < kStart + seconds(10); now = watchdog.next()) watchdog.is_due(now, alive);
    EXPECT_TRUE(watchdog.is_due(now, alive)) << interval.count();
  }
}

}  // namespace
}  // namespace stp::stpd
