// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
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
        for (;;) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          ::kill(::getpid(), SIGINT);
        }
      },
      ::testing::ExitedWithCode(1), "test: interrupted, and ended at once");
}

// The peer would not be told otherwise.
TEST_F(SignalsTest, SignalsThatComeTogetherAreOne) {
  EXPECT_EXIT(
      {
        {
          const Signals signals("test");
          for (const int each : {SIGINT, SIGINT, SIGTERM}) {
            ::kill(::getpid(), each);
            for (sigset_t pending; ::sigpending(&pending) == 0 && sigismember(&pending, each) == 1;)
              std::this_thread::yield();
          }
          while (!signals.stop()) std::this_thread::yield();
        }
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace stp::files
