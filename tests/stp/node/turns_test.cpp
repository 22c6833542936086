// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/turns.h"

#include <gtest/gtest.h>

#include "tests/stp/node/vc_fixture.h"

namespace stp::test {
namespace {

TEST(Turns, go_round_among_owners_however_many_connections_one_has) {
  Vcs many, few;
  auto &a = many.make(1), &b = many.make(2), &c = many.make(3), &d = few.make(1);
  Turns turns;
  EXPECT_TRUE(turns.empty());
  for (auto* vc : {&a, &b, &c, &d}) turns.enter(*vc);
  turns.enter(a);  // it is already there and keeps its place
  EXPECT_EQ(&turns.next(), &a);
  EXPECT_EQ(&turns.next(), &d);
  turns.enter(d);
  EXPECT_EQ(&turns.next(), &b);
  EXPECT_EQ(&turns.next(), &d);
  EXPECT_EQ(&turns.next(), &c);
  EXPECT_TRUE(turns.empty());
}

TEST(Turns, who_is_over_has_none) {
  Vcs one, other;
  auto &a = one.make(1), &b = other.make(1);
  Turns turns;
  turns.enter(a);
  turns.enter(b);
  Turns::leave(a);
  EXPECT_EQ(&turns.next(), &b);
  EXPECT_TRUE(turns.empty());
  Turns::leave(b);
  EXPECT_TRUE(turns.empty());
}

}  // namespace
}  // namespace stp::test
