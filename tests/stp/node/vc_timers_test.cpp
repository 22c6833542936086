// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/vc_timers.h"

#include <gtest/gtest.h>

#include "tests/stp/node/mechanisms.h"

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

}  // namespace
}  // namespace stp::test
