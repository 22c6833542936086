// SPDX-License-Identifier: BSD-3-Clause
// What time makes due: whether silent peers are alive.
#include "tests/stp/node/connection/connect_fixture.h"

namespace stp::test {
namespace {

class ExpiryTest : public Connect {};

// protocol: 5.23, 5.25
TEST_F(ExpiryTest, a_peer_that_vanishes_is_noticed_by_keep_alive) {
  connect();
  wire = [](const Frame&, bool) { return 0U; };
  pass(10 * kSecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kFailed);
  EXPECT_EQ(ca.user.error(), -ETIMEDOUT);
  EXPECT_EQ(cb.user.state(), ChannelState::kFailed);
  EXPECT_EQ(a.count(Counter::kVcFailed), 1U);
  EXPECT_EQ(sent(Op::kRequestState), 2U * 5) << "five questions of either side, unanswered";
}

TEST_F(ExpiryTest, keep_alive_can_be_left_out) {
  connect({.keep_alive = false}, {.keep_alive = false});
  wire = [](const Frame&, bool) { return 0U; };
  pass(60 * kSecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
  EXPECT_EQ(sent(Op::kRequestState), 0U);
}

TEST_F(ExpiryTest, an_idle_connection_lives_on) {
  connect();
  pass(60 * kSecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
  EXPECT_EQ(cb.user.state(), ChannelState::kOpen);
}

}  // namespace
}  // namespace stp::test
