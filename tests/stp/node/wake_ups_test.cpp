// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/wake_ups.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/stp/node/vc_fixture.h"

namespace stp::test {
namespace {

class WakeUpsTest : public ::testing::Test {
 protected:
  Vcs vcs;
  Vc& vc = vcs.make(1);
  UserChannel user = vcs.user();
  std::deque<Event> events;
  WakeUps wake_ups{events};

  // The number of events of that kind since the last call.
  std::size_t count(Event::Kind kind) {
    const auto found = static_cast<std::size_t>(
        std::ranges::count_if(events, [&](const Event& e) { return e.kind == kind; }));
    std::erase_if(events, [&](const Event& e) { return e.kind == kind; });
    return found;
  }
  std::size_t woken() { return count(Event::Kind::kWake); }
  std::size_t news() { return count(Event::Kind::kNews); }
};

TEST_F(WakeUpsTest, who_is_awake_is_not_woken) {
  wake_ups.touch(vc);
  wake_ups.flush(100);
  EXPECT_EQ(woken(), 0U);
}

// protocol: 6.17
TEST_F(WakeUpsTest, a_sleeper_is_woken_at_once_for_what_is_urgent_and_once_for_all_else) {
  user.begin_sleep();
  wake_ups.touch(vc, true);
  wake_ups.touch(vc, true);
  wake_ups.flush(100);
  EXPECT_EQ(woken(), 1U);
  user.end_sleep();
  user.begin_sleep();
  wake_ups.touch(vc, false);
  wake_ups.flush(1'000);
  EXPECT_EQ(woken(), 0U);
  EXPECT_EQ(wake_ups.deadline(), 1'000 + WakeUps::kDelay);
  wake_ups.touch(vc, false);
  wake_ups.flush(1'500);  // later ones do not move the deadline
  EXPECT_EQ(woken(), 0U);
  EXPECT_EQ(wake_ups.deadline(), 1'000 + WakeUps::kDelay);
  wake_ups.flush(wake_ups.deadline());
  EXPECT_EQ(woken(), 1U);
  EXPECT_EQ(wake_ups.deadline(), kNever);
}

TEST_F(WakeUpsTest, a_turn_that_brings_nothing_wakes_who_could_wait) {
  user.begin_sleep();
  wake_ups.touch(vc, false);
  wake_ups.flush(100);
  EXPECT_EQ(woken(), 0U);
  wake_ups.wake(true, 200);
  EXPECT_EQ(woken(), 1U);
}

TEST_F(WakeUpsTest, who_could_wait_is_woken_at_once_when_something_urgent_follows) {
  user.begin_sleep();
  wake_ups.touch(vc, false);
  wake_ups.flush(100);
  wake_ups.touch(vc, true);
  wake_ups.flush(200);
  EXPECT_EQ(woken(), 1U);
}

TEST_F(WakeUpsTest, who_gathers_is_told_of_news_at_once_but_not_of_room) {
  user.gather();
  wake_ups.touch(vc, false);
  wake_ups.flush(100);
  EXPECT_EQ(news(), 1U);
  wake_ups.touch_room(vc);
  wake_ups.flush(200);
  EXPECT_EQ(news(), 0U);
  wake_ups.touch(vc, false);  // it is drowsy by now
  wake_ups.flush(300);
  EXPECT_EQ(news(), 1U);
}

TEST_F(WakeUpsTest, room_wakes_who_sleeps) {
  user.begin_sleep();
  wake_ups.touch_room(vc);
  wake_ups.flush(100);
  EXPECT_EQ(woken(), 1U);
}

TEST_F(WakeUpsTest, who_is_over_is_waited_for_no_more) {
  wake_ups.touch(vc, false);
  wake_ups.flush(100);
  const auto deadline = wake_ups.deadline();
  EXPECT_NE(deadline, kNever);
  vcs.table.take(vc).reset();
  wake_ups.flush(deadline - 1);
  EXPECT_EQ(wake_ups.deadline(), kNever);
  EXPECT_TRUE(events.empty());
}

}  // namespace
}  // namespace stp::test
