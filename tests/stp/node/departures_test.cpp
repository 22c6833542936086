// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/departures.h"

#include <gtest/gtest.h>

#include "tests/stp/node/vc_fixture.h"

namespace stp::test {
namespace {

// protocol: 10.20
TEST(NodeDepartures, a_clock_begins_with_the_first_look_at_the_time_after_its_request_has_left) {
  Vcs vcs;
  auto& vc = vcs.make(1);
  NodeDepartures departures;
  vc.handshake.start(100, 50);
  vc.questions.ask(5, 100, 50, 0);
  departures.leaves(vc, NodeDepartures::kHandshakeClock);
  departures.start_clocks(vcs.table, 1'000);  // the request is still in the queue
  EXPECT_EQ(vc.handshake.deadline(), 150);
  departures.have_left();
  EXPECT_EQ(vc.handshake.deadline(), 150);
  departures.start_clocks(vcs.table, 2'000);
  EXPECT_EQ(vc.handshake.deadline(), 2'050);
  EXPECT_EQ(vc.questions.deadline(), 150);  // nothing of it has left
  departures.start_clocks(vcs.table, 3'000);
  EXPECT_EQ(vc.handshake.deadline(), 2'050);  // once
}

TEST(NodeDepartures, each_request_has_its_clock_and_a_connection_that_is_over_none) {
  Vcs vcs;
  auto &vc = vcs.make(1), &over = vcs.make(2);
  NodeDepartures departures;
  vc.questions.ask(5, 100, 50, 0);
  departures.leaves(vc, NodeDepartures::kAskClock);
  departures.leaves(over, NodeDepartures::kAskClock);
  departures.leaves(vc, NodeDepartures::kGrantClock);
  const auto gone = vcs.table.take(over);
  departures.have_left();
  departures.start_clocks(vcs.table, 500);
  EXPECT_EQ(vc.questions.deadline(), 550);
  EXPECT_EQ(vc.recovery.granted_at(), 500);
}

}  // namespace
}  // namespace stp::test
