// SPDX-License-Identifier: BSD-3-Clause
// The window of a path that others use, too (section 13).
#include "stp/node/inbound/path_window.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stp {
namespace {

constexpr std::uint64_t kWindowStu = 1'024;
constexpr Time kWindowTrip = 20 * kMillisecond;  // without a queue

class PathWindowTest : public ::testing::Test {
 protected:
  // A window of STUs arrives in each of `trips` round trips of `delay`.
  void pass(unsigned trips, Time delay, bool full = true) {
    for (; trips > 0; --trips) {
      const auto stus = std::max<std::uint64_t>(window.bytes() / kWindowStu, 1);
      for (std::uint64_t i = 0; i < stus; ++i) {
        now += delay / stus;
        window.arrived(kWindowStu, delay, full, now);
      }
    }
  }
  PathWindow window{kWindowStu};
  Time now = kSecond;
};

// protocol: 13.10
TEST_F(PathWindowTest, doubles_each_round_trip_until_something_waits) {
  const auto first = window.bytes();
  EXPECT_EQ(first, 16'384U);
  pass(3, kWindowTrip);
  EXPECT_GE(window.bytes(), 8 * first - 8 * kWindowStu);
  EXPECT_FALSE(window.is_known());
  pass(2, kWindowTrip + 10 * kMillisecond);
  EXPECT_TRUE(window.is_known());
  const auto then = window.bytes();
  pass(1, kWindowTrip);
  EXPECT_LT(window.bytes(), then + then / 2);
}

// protocol: 13.11
TEST_F(PathWindowTest, shrinks_while_the_queue_is_long_and_grows_when_it_is_gone) {
  pass(3, kWindowTrip);
  const auto most = window.bytes();
  pass(16, kWindowTrip + 10 * kMillisecond);
  const auto less = window.bytes();
  EXPECT_LT(less, most);
  pass(6, kWindowTrip);
  EXPECT_GT(window.bytes(), less);
}

TEST_F(PathWindowTest, keeps_an_stu_at_least) {
  pass(1, kWindowTrip);
  pass(60, kWindowTrip + 30 * kMillisecond);
  EXPECT_GE(window.bytes(), kWindowStu);
}

TEST_F(PathWindowTest, a_window_that_is_not_used_does_not_grow) {
  const auto first = window.bytes();
  pass(5, kWindowTrip, false);
  EXPECT_EQ(window.bytes(), first);
}

// protocol: 13.12
TEST_F(PathWindowTest, a_loss_takes_three_tenths_once_in_a_round_trip) {
  pass(3, kWindowTrip);
  const auto before = window.bytes();
  window.lost(now);
  const auto after = window.bytes();
  EXPECT_NEAR(static_cast<double>(after), 0.7 * static_cast<double>(before), kWindowStu);
  window.lost(now + kWindowTrip / 2);
  EXPECT_EQ(window.bytes(), after);
  window.lost(now + 2 * kWindowTrip);
  EXPECT_LT(window.bytes(), after);
}

// A path that has become longer looks like one with a queue, until the window has been small for a
// moment.
// protocol: 13.11
TEST_F(PathWindowTest, finds_out_from_time_to_time_how_long_the_path_is) {
  pass(2, kWindowTrip);
  pass(2, kWindowTrip + 10 * kMillisecond);
  pass(40, 2 * kWindowTrip);
  EXPECT_LT(window.bytes(), 8 * kWindowStu);
  pass(24, 2 * kWindowTrip);
  EXPECT_GT(window.bytes(), 8 * kWindowStu) << "nothing waits on the longer path";
}

}  // namespace
}  // namespace stp
