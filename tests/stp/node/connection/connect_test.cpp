// SPDX-License-Identifier: BSD-3-Clause
// Connections are set up, refused and ended, also with loss and frames of strangers (protocol,
// section 5).
#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

using wire::Op;

class Connect : public TwoNodes {
 protected:
  VcInfo info(Host& host, const Connection& c) {
    VcInfo out{};
    EXPECT_EQ(host.node.vc_info(c.id, out), 0);
    return out;
  }
  // A wire that loses the first `count` frames of one operation.
  void lose(Op op, unsigned count) {
    wire = [=, left = count](const Frame& f, bool) mutable -> unsigned {
      if (left == 0 || parsed(f).header.op() != op) return 1;
      --left;
      return 0;
    };
  }
  [[nodiscard]] std::size_t sent(Op op) const {
    std::size_t n = 0;
    for (const auto& f : seen) n += parsed(f).header.op() == op;
    return n;
  }
};

// protocol: 5.1, 5.26, 6.1
TEST_F(Connect, both_ends_learn_what_the_other_announced) {
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
TEST_F(Connect, a_key_of_0_makes_no_connection_and_ends_none) {
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
TEST_F(Connect, nobody_listens_is_a_refusal) {
  endpoint_a = a.open();
  begin_connect();
  settle();
  EXPECT_EQ(ca.user.state(), ChannelState::kFailed);
  EXPECT_EQ(ca.user.error(), -ECONNREFUSED);
  EXPECT_EQ(b.count(Counter::kNoListener), 1U);
  EXPECT_EQ(b.node.vc_count(), 0U);
}

// protocol: 5.21
TEST_F(Connect, nobody_there_is_a_time_out_after_eight_tries) {
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
TEST_F(Connect, a_lost_request_or_answer_is_repeated_and_makes_one_connection) {
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
TEST_F(Connect, a_full_backlog_leaves_the_request_unanswered_until_there_is_room) {
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

// protocol: 5.2
TEST_F(Connect, closing_takes_three_steps_and_leaves_nothing) {
  connect();
  seen.clear();
  ASSERT_EQ(a.node.close(ca.id, false, now), 0);
  settle();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(parsed(seen[0]).header.op(), Op::kRequestDisconnect);
  EXPECT_EQ(parsed(seen[1]).header.op(), Op::kDisconnectAnswer);
  EXPECT_EQ(parsed(seen[2]).header.op(), Op::kDisconnectComplete);
  EXPECT_EQ(ca.user.state(), ChannelState::kClosed);
  EXPECT_EQ(cb.user.state(), ChannelState::kPeerClosed);
  EXPECT_EQ(a.node.vc_count(), 0U);
  ASSERT_EQ(b.node.close(cb.id, false, now), 0);
  settle();
  EXPECT_EQ(b.node.vc_count(), 0U);
  EXPECT_TRUE(has_event(a, Event::Kind::kVcGone));
  EXPECT_TRUE(has_event(b, Event::Kind::kVcGone));
  EXPECT_EQ(a.node.next_deadline(), kNever);
  EXPECT_EQ(b.node.next_deadline(), kNever);
}

TEST_F(Connect, requests_dropped_when_the_peer_closes_are_counted) {
  connect();
  ASSERT_EQ(b.node.close(cb.id, true, now), 0);
  const auto rd = take(b);
  ASSERT_TRUE(rd);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ca.user.send(control(Op::kNoOperation)));
  arrive(a, *rd);
  EXPECT_EQ(ca.user.state(), ChannelState::kPeerClosed);
  EXPECT_EQ(ca.user.refused(), 3U);
  EXPECT_TRUE(ca.user.done(ca.user.sent()));
}

// protocol: 5.15
TEST_F(Connect, both_sides_may_close_at_once) {
  connect();
  ASSERT_EQ(a.node.close(ca.id, true, now), 0);
  ASSERT_EQ(b.node.close(cb.id, true, now), 0);
  pass(kSecond);
  EXPECT_EQ(a.node.vc_count(), 0U);
  EXPECT_EQ(b.node.vc_count(), 0U);
  EXPECT_EQ(sent(Op::kDisconnectAnswer), 2U);
  EXPECT_EQ(a.count(Counter::kVcClosed), 1U);
  EXPECT_EQ(b.count(Counter::kVcClosed), 1U);
}

// protocol: 5.11, 5.12, 5.16
TEST_F(Connect, closing_survives_the_loss_of_each_step) {
  for (const auto op : {Op::kRequestDisconnect, Op::kDisconnectAnswer, Op::kDisconnectComplete}) {
    SCOPED_TRACE(wire::short_name(op));
    wire = nullptr;
    if (listener == kNoneId) {
      connect();
    } else {
      b.stock(listener);
      begin_connect();
      settle();
      accept();
    }
    lose(op, 2);
    ASSERT_EQ(a.node.close(ca.id, false, now), 0);
    pass(5 * kSecond);
    EXPECT_EQ(ca.user.state(), ChannelState::kClosed);
    EXPECT_EQ(cb.user.state(), ChannelState::kPeerClosed);
    ASSERT_EQ(b.node.close(cb.id, false, now), 0);
    EXPECT_EQ(a.node.vc_count(), 0U);
    EXPECT_EQ(b.node.vc_count(), 0U);
  }
}

// protocol: 5.23, 5.25
TEST_F(Connect, a_peer_that_vanishes_is_noticed_by_keep_alive) {
  connect();
  wire = [](const Frame&, bool) { return 0U; };
  pass(10 * kSecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kFailed);
  EXPECT_EQ(ca.user.error(), -ETIMEDOUT);
  EXPECT_EQ(cb.user.state(), ChannelState::kFailed);
  EXPECT_EQ(a.count(Counter::kVcFailed), 1U);
  EXPECT_EQ(sent(Op::kRequestState), 2U * 5) << "five questions of either side, unanswered";
}

TEST_F(Connect, keep_alive_can_be_left_out) {
  connect({.keep_alive = false}, {.keep_alive = false});
  wire = [](const Frame&, bool) { return 0U; };
  pass(60 * kSecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
  EXPECT_EQ(sent(Op::kRequestState), 0U);
}

TEST_F(Connect, an_idle_connection_lives_on) {
  connect();
  pass(60 * kSecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
  EXPECT_EQ(cb.user.state(), ChannelState::kOpen);
}

// protocol: 5.10
TEST_F(Connect, a_late_request_of_a_closed_connection_makes_no_new_one) {
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
TEST_F(Connect, an_answer_nobody_waits_for_ends_the_ghost) {
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

// protocol: 5.12
TEST_F(Connect, a_disconnect_to_a_port_long_gone_is_answered_from_its_own_fields) {
  wire::Header rd;
  rd.op_flags = wire::op_flags(Op::kRequestDisconnect);
  rd.d_port = 200;
  rd.s_port = 7;
  rd.d_key = 0x1234;
  rd.offset = 0x5678;
  inject(b, kMacA, rd);
  const auto answer = take(b);
  ASSERT_TRUE(answer);
  const auto h = parsed(*answer).header;
  EXPECT_EQ(h.op(), Op::kDisconnectAnswer);
  EXPECT_EQ(h.d_port, 7);
  EXPECT_EQ(h.d_key, 0x5678U);
  EXPECT_EQ(h.offset, 0x1234U);
}

// protocol: 2.9, 5.18
TEST_F(Connect, strangers_are_dropped_and_counted_by_reason) {
  connect();
  const auto at_b = info(b, cb);
  wire::Header h;
  h.op_flags = wire::op_flags(Op::kNoOperation);
  h.d_port = at_b.local_port;
  h.s_port = at_b.remote_port;
  h.d_key = at_b.local_key;

  auto wrong = h;
  wrong.d_port = 250;
  inject(b, kMacA, wrong);
  EXPECT_EQ(b.count(Counter::kBadPort), 1U);
  wrong = h;
  wrong.d_key ^= 1;
  inject(b, kMacA, wrong);
  EXPECT_EQ(b.count(Counter::kBadKey), 1U);
  inject(b, MacAddr{{2, 0, 0, 0, 0, 9}}, h);
  EXPECT_EQ(b.count(Counter::kBadPeer), 1U);
  wrong = h;
  wrong.s_port += 1;
  inject(b, kMacA, wrong);
  EXPECT_EQ(b.count(Counter::kBadPeer), 2U);
  inject(b, MacAddr{{3, 0, 0, 0, 0, 1}}, h);
  EXPECT_EQ(b.count(Counter::kBadSource), 1U);
  EXPECT_FALSE(get(cb));
  inject(b, kMacA, h);
  EXPECT_TRUE(get(cb)) << "the same header with everything right is delivered";
}

// protocol: 2.10
TEST_F(Connect, a_frame_for_another_station_is_not_looked_at) {
  wire::Header rd;
  rd.op_flags = wire::op_flags(Op::kRequestDisconnect);
  rd.s_port = 7;
  Frame frame(200);
  frame.resize(wire::emit({MacAddr{{2, 0, 0, 0, 0, 77}}, kMacA, {}, false}, rd, {}, {}, frame));
  arrive(b, frame);
  EXPECT_EQ(b.count(Counter::kNotForUs), 1U);
  EXPECT_FALSE(take(b));
}

// protocol: 5.13
TEST_F(Connect, a_disconnect_with_a_wrong_key_is_dropped) {
  connect();
  const auto at_b = info(b, cb);
  wire::Header rd;
  rd.op_flags = wire::op_flags(Op::kRequestDisconnect);
  rd.d_port = at_b.local_port;
  rd.s_port = at_b.remote_port;
  rd.d_key = at_b.local_key + 1;
  inject(b, kMacA, rd);
  EXPECT_EQ(b.count(Counter::kBadKey), 1U);
  EXPECT_EQ(cb.user.state(), ChannelState::kOpen);
}

// protocol: 5.2
TEST_F(Connect, a_refused_connection_and_every_other_state_ignore_what_is_not_legal_there) {
  connect();
  const auto at_b = info(b, cb);
  wire::Header da;
  da.op_flags = wire::op_flags(Op::kDisconnectAnswer);
  da.d_port = at_b.local_port;
  da.s_port = at_b.remote_port;
  da.d_key = at_b.local_key;
  inject(b, kMacA, da);
  da.op_flags = wire::op_flags(Op::kDisconnectComplete);
  inject(b, kMacA, da);
  EXPECT_EQ(b.count(Counter::kBadState), 2U);
  EXPECT_EQ(cb.user.state(), ChannelState::kOpen);
}

// Frames that were sent before the end was seen, and repeats of the end itself, are no faults. So
// they must not count as bad_state, which an operator has to investigate. protocol: 5.17
TEST_F(Connect, an_orderly_end_counts_nothing_as_bad) {
  connect();
  ASSERT_EQ(a.node.close(ca.id, false, now), 0);
  const auto rd = take(a);
  ASSERT_TRUE(rd);
  put(b, cb, control(Op::kNoOperation));  // in flight when the RD arrives
  arrive(a, *take(b));
  EXPECT_EQ(a.count(Counter::kCrossedEnd), 1U);
  ASSERT_EQ(b.node.close(cb.id, false, now), 0);  // and both end it at once
  wire = [](const Frame&, bool) { return 2U; };
  arrive(b, *rd);
  pass(kSecond);
  EXPECT_EQ(a.count(Counter::kBadState) + b.count(Counter::kBadState), 0U);
  EXPECT_EQ(a.count(Counter::kVcClosed) + b.count(Counter::kVcClosed), 2U);
}

// protocol: 5.3
TEST_F(Connect, a_port_chosen_by_the_user_is_used_once) {
  EndpointConfig of_a{.port = 4321};
  connect(of_a);
  EXPECT_EQ(info(a, ca).local_port, 4321);
  Connection second;
  second.memory = std::make_unique<ChannelMemory>(ChannelGeometry{64, 64});
  EXPECT_EQ(a.node.connect(endpoint_a, kMacB, 3000, second.memory->data(), 0, second.id, now),
            -EADDRINUSE);
}

TEST_F(Connect, thousands_of_connections_come_and_go) {
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
