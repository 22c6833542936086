// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/background.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "libst/client/wait.h"
#include "tests/managed/no_link.h"

namespace stp::managed {
namespace {

class BackgroundThread : public testing::Test {
 protected:
  void start() {
    background.start([this] {
      std::lock_guard const guard(mutex);
      ++turns;
      turned.notify_all();
      return kNever;
    });
  }
  void TearDown() override { background.stop(); }
  // Whether that many turns have been taken within `patience`.
  bool reached(unsigned wanted, std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    std::unique_lock guard(mutex);
    return turned.wait_for(guard, patience, [&] { return turns >= wanted; });
  }
  void ring() {
    ++link.page().events;
    client::wake_all(link.page().events);
  }
  NoLink link;
  std::mutex mutex;
  std::condition_variable turned;
  unsigned turns = 0;
  Background background{link};
};

TEST_F(BackgroundThread, TakesATurnWhenTheLinkHasNews) {
  start();
  ASSERT_TRUE(reached(1));
  for (unsigned wanted = 2; wanted < 10; ++wanted) {
    ring();
    ASSERT_TRUE(reached(wanted));
  }
}

TEST_F(BackgroundThread, StaysAwayWhileTheProgramWaits) {
  std::optional<Background::Visit> visit(background);
  start();
  ring();
  EXPECT_FALSE(reached(1, std::chrono::milliseconds(50)));
  visit.reset();
  EXPECT_TRUE(reached(1));
}

TEST_F(BackgroundThread, ComesBackAfterTheLastCall) {
  start();
  ASSERT_TRUE(reached(1));
  background.visited();
  ring();
  EXPECT_TRUE(reached(2));
}

TEST_F(BackgroundThread, EndsWhileItStaysAway) {
  Background::Visit const visit(background);
  start();
  background.stop();
  EXPECT_EQ(turns, 0U);
}

}  // namespace
}  // namespace stp::managed
