// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

namespace stp::files {
namespace {

void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

class SignalsTest : public ::testing::Test {
 protected:
  SignalsTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

// As one that waits for an stpd that makes no progress.
TEST_F(SignalsTest, AProgramThatDoesNotEndInTimeIsEnded) {
  EXPECT_EXIT(
      {
        const Signals signals("test", std::chrono::milliseconds(1));
        ::kill(::getpid(), SIGTERM);
        hang();
      },
      ::testing::ExitedWithCode(1), "test: interrupted, and ended at once");
}

TEST_F(SignalsTest, TheSecondSignalEndsAProgram) {
  EXPECT_EXIT(
      {
        Signals signals("test", std::chrono::milliseconds(1));
        signals.take_time();
        ::kill(::getpid(), SIGINT);
        while (!signals.stop()) std::this_thread::yield();
        ::kill(::getpid(), SIGINT);
        hang();
      },
      ::testing::ExitedWithCode(1), "test: interrupted, and ended at once");
}

}  // namespace
}  // namespace stp::files
