// SPDX-License-Identifier: BSD-3-Clause
// The time that a Node gets: at most slightly older than the system's, and never going back.
#include "dpdk_port/dpdk/turn_clock.h"

#include <thread>

#include "tests/dpdk_port/link_pair.h"

namespace stp::port {
namespace {

void expect_good_time(TurnClock& clock, Time& last) {
  constexpr Time kSlack = 100;  // the rate of the TSC is known to one part in ten thousand
  const auto before = now();
  const auto time = clock.now();
  EXPECT_GE(time + TurnClock::kOldest + kSlack, before);
  EXPECT_LE(time, now());
  EXPECT_GE(time, last);
  last = time;
}

void expect_good_times(TurnClock& clock) {
  Time last = 0;
  for (int pause = 0; pause < 50; ++pause) {
    for (int look = 0; look < 1'000; ++look) expect_good_time(clock, last);
    std::this_thread::sleep_for(std::chrono::microseconds(10 * pause));
  }
}

TEST(TurnClocks, TellTheSystemsTimeWithoutADevice) {
  TurnClock clock;
  expect_good_times(clock);
}

TEST(TurnClocks, TellTheSystemsTimeWhereTheProcessorsCounterHelps) {
  LinkEnd end;
  end.open("vdev:net_null0");  // with a device, DPDK knows the rate of the TSC
  TurnClock clock;
  expect_good_times(clock);
}

TEST(TurnClocks, TakeTheTimeThatSomebodyHasReadButDoNotGoBackToAnEarlierOne) {
  TurnClock clock;
  const auto before = clock.now();
  const auto read = now();
  EXPECT_EQ(clock.heed(read), read);
  EXPECT_EQ(clock.last(), read);
  EXPECT_EQ(clock.heed(before), read);
  EXPECT_GE(clock.now(), read);
}

}  // namespace
}  // namespace stp::port
