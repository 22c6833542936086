// SPDX-License-Identifier: BSD-3-Clause
// Connections are set up and refused, also with loss (docs/protocol.md, section 5).
#include "tests/stp/node/connection/connect_fixture.h"

namespace stp::test {
namespace {

class OpeningsTest : public Connect {};

// protocol: 5.1, 5.26, 6.1
TEST_F(OpeningsTest, both_ends_learn_what_the_other_announced) {
  EndpointConfig of_a{.bufsize = 12, .max_stu = 10, .slots = 10};
  EndpointConfig of_b{.bufsize = 16, .max_stu = 14, .slots = 20};
  connect(of_a, of_b);
  const auto at_a = info(a, ca), at_b = info(b, cb);
  EXPECT_EQ(at_a.state, VcState::kOpen);
  EXPECT_EQ(at_b.state, VcState::kOpen);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
  EXPECT_EQ(at_a.remote_bufsize, 16U);
  EXPECT_EQ(at_a.remote_max_stu, 13U) << "the link carries no more than 2^13";
  EXPECT_EQ(at_a.remote_slots, 20U);
  EXPECT_EQ(at_b.remote_slots, 10U);
  EXPECT_EQ(at_b.remote_max_stu, 10U);
  EXPECT_EQ(at_a.remote_port, at_b.local_port);
  EXPECT_EQ(at_a.local_key, at_b.remote_key);
  EXPECT_NE(at_a.local_key, 0U);
  EXPECT_TRUE(has_event(b, Event::Kind::kAcceptReady));
}

// protocol: 5.5
TEST_F(OpeningsTest, a_key_of_0_makes_no_connection_and_ends_none) {
  listener = b.open();
  ASSERT_EQ(b.node.listen(listener, 3000), 0);
  b.stock(listener);
  wire::Header h;
  h.op_flags = wire::op_flags(Op::kRequestConnection);
  h.param = 8;
  h.s_port = 5;
  h.bufx = h.sync = 12;
  h.d_id = 3000;
  inject(b, kMacA, h);
  EXPECT_EQ(b.count(Counter::kBadKey), 1U);
  EXPECT_FALSE(take(b)) << "who has no Key is not answered";
  endpoint_a = a.open();
  begin_connect();
  take(a);
  const auto at = info(a, ca);
  for (const auto op : {Op::kConnectionAnswer, Op::kRequestDisconnect}) {
    h.op_flags = wire::op_flags(op);
    h.d_port = at.local_port;
    h.d_key = at.local_key;
    inject(a, kMacB, h);
    EXPECT_EQ(info(a, ca).state, VcState::kConnecting);
  }
  EXPECT_EQ(a.count(Counter::kBadKey), 2U);
  EXPECT_FALSE(take(a));
}

// protocol: 5.6
TEST_F(OpeningsTest, nobody_listens_is_a_refusal) {
  endpoint_a = a.open();
  begin_connect();
  settle();
  EXPECT_EQ(ca.user.state(), ChannelState::kFailed);
  EXPECT_EQ(ca.user.error(), -ECONNREFUSED);
  EXPECT_EQ(b.count(Counter::kNoListener), 1U);
  EXPECT_EQ(b.node.vc_count(), 0U);
}

// protocol: 5.21
TEST_F(OpeningsTest, nobody_there_is_a_time_out_after_eight_tries) {
  wire = [](const Frame&, bool) { return 0U; };
  endpoint_a = a.open();
  begin_connect();
  pass(5 * kSecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kFailed);
  EXPECT_EQ(ca.user.error(), -ETIMEDOUT);
  EXPECT_EQ(sent(Op::kRequestConnection), 8U);
  EXPECT_EQ(a.count(Counter::kVcUnanswered), 1U);
}

// protocol: 5.4, 5.21
TEST_F(OpeningsTest, a_lost_request_or_answer_is_repeated_and_makes_one_connection) {
  for (const auto op : {Op::kRequestConnection, Op::kConnectionAnswer}) {
    SCOPED_TRACE(wire::short_name(op));
    lose(op, 3);
    if (listener == kNoneId) {
      listener = b.open();
      ASSERT_EQ(b.node.listen(listener, 3000), 0);
      endpoint_a = a.open();
    }
    b.stock(listener);
    const auto before = b.node.vc_count();
    begin_connect();
    pass(kSecond);
    EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
    EXPECT_EQ(b.node.vc_count(), before + 1);
  }
  EXPECT_EQ(b.count(Counter::kDuplicateRc), 3U);
}

// protocol: 5.7
TEST_F(OpeningsTest, a_full_backlog_leaves_the_request_unanswered_until_there_is_room) {
  listener = b.open();
  ASSERT_EQ(b.node.listen(listener, 3000), 0);
  endpoint_a = a.open();
  begin_connect();
  settle();
  EXPECT_EQ(ca.user.state(), ChannelState::kConnecting);
  EXPECT_EQ(b.count(Counter::kBacklogFull), 1U);
  EXPECT_TRUE(has_event(b, Event::Kind::kStockLow));
  b.stock(listener);
  pass(100 * kMillisecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
}

// protocol: 5.10
TEST_F(OpeningsTest, a_late_request_of_a_closed_connection_makes_no_new_one) {
  connect();
  const auto late = seen.front();
  ASSERT_EQ(parsed(late).header.op(), Op::kRequestConnection);
  ASSERT_EQ(a.node.close(ca.id, false, now), 0);
  settle();
  ASSERT_EQ(b.node.close(cb.id, false, now), 0);
  b.stock(listener);
  arrive(b, late);
  EXPECT_EQ(b.count(Counter::kLateRc), 1U);
  EXPECT_EQ(b.node.vc_count(), 0U);
  now += 4 * kSecond;
  arrive(b, late);
  EXPECT_EQ(b.node.vc_count(), 1U) << "four seconds later nobody remembers";
}

// protocol: 5.9
TEST_F(OpeningsTest, an_answer_nobody_waits_for_ends_the_ghost) {
  listener = b.open();
  ASSERT_EQ(b.node.listen(listener, 3000), 0);
  b.stock(listener);
  endpoint_a = a.open();
  begin_connect();
  const auto request = take(a);
  ASSERT_TRUE(request);
  ASSERT_EQ(a.node.close(ca.id, true, now), 0);  // gives up before the answer comes
  arrive(b, *request);
  ASSERT_EQ(b.node.vc_count(), 1U);
  settle();
  EXPECT_EQ(a.count(Counter::kGhostCa), 1U);
  accept();
  EXPECT_EQ(cb.user.state(), ChannelState::kPeerClosed);
}

// protocol: 5.3
TEST_F(OpeningsTest, a_port_chosen_by_the_user_is_used_once) {
  EndpointConfig of_a{.port = 4321};
  connect(of_a);
  EXPECT_EQ(info(a, ca).local_port, 4321);
  Connection second;
  second.memory = std::make_unique<ChannelMemory>(ChannelGeometry{64, 64});
  EXPECT_EQ(a.node.connect(endpoint_a, kMacB, 3000, second.memory->data(), 0, second.id, now),
            -EADDRINUSE);
}

TEST_F(OpeningsTest, thousands_of_connections_come_and_go) {
  connect();
  for (int i = 0; i < 3000; ++i) {
    Connection c;
    c.memory = std::make_unique<ChannelMemory>(ChannelGeometry{64, 64});
    b.stock(listener);
    ASSERT_EQ(a.node.connect(endpoint_a, kMacB, 3000, c.memory->data(), 0, c.id, now), 0);
    settle();
    VcId other = kNoneId;
    ASSERT_EQ(b.node.accept(listener, other), 0);
    ASSERT_EQ(a.node.close(c.id, false, now), 0);
    settle();
    ASSERT_EQ(b.node.close(other, false, now), 0);
    settle();
    a.events.clear();
    b.events.clear();
    b.stocked.clear();
    seen.clear();
  }
  EXPECT_EQ(a.node.vc_count(), 1U);
  EXPECT_EQ(b.node.vc_count(), 1U);
}

}  // namespace
}  // namespace stp::test
