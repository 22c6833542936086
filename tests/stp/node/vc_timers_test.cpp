// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/vc_timers.h"

#include <gtest/gtest.h>

#include "tests/stp/node/mechanisms.h"
#include "tests/stp/node/vc_fixture.h"

namespace stp::test {
namespace {

TEST(VcTimers, the_first_deadline_of_any_mechanism_counts) {
  Mechanisms with;
  auto &vc = with.open(1), &other = with.open(2);
  VcTimers timers;
  vc.handshake.start(0, 500);
  timers.update(vc);
  other.questions.ask(1, 0, 300, 0);
  timers.update(other);
  EXPECT_EQ(timers.next(), 300);
  EXPECT_EQ(&timers.first(), &other);
  vc.decision.begin(0);  // later: no change
  timers.update(vc);
  vc.questions.ask(1, 0, 100, 0);
  timers.update(vc);
  EXPECT_EQ(timers.next(), 100);
  EXPECT_EQ(&timers.first(), &vc);
  timers.remove(vc);
  timers.remove(other);
  EXPECT_EQ(timers.next(), kNever);
}

TEST(VcTimers, a_deadline_that_moves_to_later_is_moved_when_it_comes) {
  Mechanisms with;
  auto& vc = with.open(1);
  VcTimers timers;
  timers.update(vc);
  EXPECT_EQ(timers.next(), VcTimers::kKeepAlive);
  vc.heard = kSecond;
  timers.update(vc);
  EXPECT_EQ(timers.next(), VcTimers::kKeepAlive) << "a frame from the peer costs no timer work";
  timers.renew(vc);
  EXPECT_EQ(timers.next(), kSecond + VcTimers::kKeepAlive);
}

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
}

}  // namespace
}  // namespace stp::test
