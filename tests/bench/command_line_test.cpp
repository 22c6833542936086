// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/command_line.h"

#include <gtest/gtest.h>

namespace stp::bench {
namespace {

constexpr const char* kUsage = "usage: it [--sleep] [--small-files N] ADDRESS\n  --json  all\n";

TEST(CommandLine, NamesAnOptionThatTheUsageDoesNotAndWhatMayHaveBeenMeant) {
  EXPECT_EQ(wrong_option({"--sleep", "--small-files=3", "a", "-", "-1", "--json"}, kUsage), "");
  EXPECT_EQ(wrong_option({"--sleep", "--slep"}, kUsage),
            "there is no option --slep; did you mean --sleep?");
  EXPECT_EQ(wrong_option({"--small-flies=3"}, kUsage),
            "there is no option --small-flies; did you mean --small-files?");
  EXPECT_EQ(wrong_option({"-x"}, kUsage), "there is no option -x");
  EXPECT_EQ(wrong_option({"--small"}, kUsage), "there is no option --small");
}

TEST(CommandLine, WrongEndsTheProgramWithItsUsage) {
  const char* const wrong[] = {"/usr/bin/it", "--slep"};
  EXPECT_EXIT(hold_to(kUsage, 2, wrong), ::testing::ExitedWithCode(2),
              "^it: there is no option --slep; did you mean --sleep.\nusage: it ");
  for (const char* const each : {"--help", "-h"}) {
    const char* const help[] = {"it", each};
    EXPECT_EXIT(hold_to(kUsage, 2, help), ::testing::ExitedWithCode(0), "");
  }
}

TEST(CommandLine, ANumberIsAWholeWord) {
  EXPECT_EQ(number_of("0.5"), 0.5);
  for (const auto* const none : {"", "x", "1x", "-1", "0", "nan"}) EXPECT_EQ(number_of(none), 0);
}

}  // namespace
}  // namespace stp::bench
