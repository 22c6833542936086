// SPDX-License-Identifier: BSD-3-Clause
// How much of a log clients may fill.
#include "tools/stpd/log.h"

#include <gtest/gtest.h>

#include <vector>

namespace stp::stpd {
namespace {

using Told = std::vector<std::pair<uid_t, std::uint64_t>>;

Told end_intervals(LogBudget& budget, LogBudget::Clock::time_point now) {
  Told told;
  budget.end_intervals(now,
                       [&](uid_t user, std::uint64_t lines) { told.emplace_back(user, lines); });
  return told;
}

TEST(LogBudget, TellsOnceInAnIntervalWhatItHasKeptBack) {
  LogBudget budget;
  const LogBudget::Clock::time_point begin{};
  unsigned written = 0;
  for (int i = 0; i < 10'000; ++i) written += budget.allows(1'000, begin) ? 1 : 0;
  EXPECT_EQ(written, LogBudget::kLines);
  EXPECT_TRUE(budget.allows(1'001, begin)) << "another user has lines of its own";
  EXPECT_TRUE(end_intervals(budget, begin + LogBudget::kInterval / 2).empty());
  EXPECT_EQ(end_intervals(budget, begin + LogBudget::kInterval),
            (Told{{1'000, 10'000 - LogBudget::kLines}}));
  EXPECT_TRUE(budget.allows(1'000, begin + LogBudget::kInterval));
}

TEST(LogBudget, ManyUsersAtOnceShareOneOnceTheyAreTooMany) {
  LogBudget budget;
  const LogBudget::Clock::time_point begin{};
  unsigned written = 0;
  for (uid_t user = 0; user < 100'000; ++user) written += budget.allows(user, begin) ? 1 : 0;
  EXPECT_LE(written, 256 + LogBudget::kLines);
  EXPECT_EQ(end_intervals(budget, begin + LogBudget::kInterval),
            (Told{{LogBudget::kTheRest, 100'000 - written}}));
}

}  // namespace
}  // namespace stp::stpd
