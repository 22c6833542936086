// SPDX-License-Identifier: BSD-3-Clause
// Connections end, also with loss and frames of strangers (docs/protocol.md, section 5).

#include "stp/node/connection/vc_endings.h"

#include <gtest/gtest.h>

#include "tests/stp/node/connection/connect_fixture.h"
#include "tests/stp/node/mechanisms.h"
#include "tests/stp/node/nops_fixture.h"

namespace stp::test {
namespace {

class VcEndingsTest : public Connect {};

// protocol: 5.2
TEST_F(VcEndingsTest, closing_takes_three_steps_and_leaves_nothing) {
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

TEST_F(VcEndingsTest, requests_dropped_when_the_peer_closes_are_counted) {
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

// protocol: 5.11, 5.12, 5.16
TEST_F(VcEndingsTest, closing_survives_the_loss_of_each_step) {
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

// protocol: 5.2
TEST_F(VcEndingsTest, a_refused_connection_and_every_other_state_ignore_what_is_not_legal_there) {
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
TEST_F(VcEndingsTest, an_orderly_end_counts_nothing_as_bad) {
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

class ClosedWithRequests : public Nops {};

// protocol: 5.43
TEST_F(ClosedWithRequests, what_a_closed_connection_cannot_send_for_30_s_is_dropped) {
  connect({}, {.slots = 4});
  for (std::uint32_t i = 0; i < 8; ++i) put(a, ca, nop(i));
  settle();
  ASSERT_EQ(a.node.close(ca.id, false, now), 0);
  pass(29 * kSecond);
  EXPECT_EQ(a.node.vc_count(), 1U);
  ASSERT_TRUE(get(cb));  // a frame is sent, so the 30 s start again
  pass(29 * kSecond);
  EXPECT_EQ(a.node.vc_count(), 1U);
  EXPECT_EQ(cb.user.state(), ChannelState::kOpen);
  pass(3 * kSecond);
  EXPECT_EQ(a.node.vc_count(), 0U);
  EXPECT_EQ(cb.user.state(), ChannelState::kPeerClosed);
}

// protocol: 5.43
TEST_F(ClosedWithRequests, a_closed_connection_that_sends_little_at_a_time_goes_on) {
  connect({}, {.slots = 4});
  for (std::uint32_t i = 0; i < 8; ++i) put(a, ca, nop(i));
  settle();
  ASSERT_EQ(a.node.close(ca.id, false, now), 0);
  pass(29 * kSecond);
  ASSERT_TRUE(get(cb));
  std::vector<Op> sent;
  while (std::find(sent.begin(), sent.end(), Op::kNoOperation) == sent.end()) {
    now = std::max(now, a.node.next_deadline());
    a.node.expire(now);
    sent = burst(a, &b);  // limited by Slots, not by the room for frames
    while (const auto answer = take(b)) arrive(a, *answer);
  }
  pass(29 * kSecond);
  EXPECT_EQ(a.node.vc_count(), 1U);
  pass(2 * kSecond);
  EXPECT_EQ(a.node.vc_count(), 0U);
}

TEST(Tidying, what_ended_is_freed_in_slices_of_later_turns) {
  constexpr int kMxs = 3'000;
  Mechanisms with;
  Buffers buffers(12, 1);
  with.vcs.endpoint.receive = BufxRange(0, 16, 12);
  const auto all = buffers.all();
  RegionId region = kNoneId;
  ASSERT_EQ(with.memory.map(with.vcs.endpoint, Direction::kReceive, 0, {&all, 1}, region), 0);
  std::uint16_t mx = 0;
  for (int i = 0; i < kMxs; ++i)
    ASSERT_EQ(with.memory.alloc_mx(region, kNoneId, permit::kData, mx), 0);
  EXPECT_FALSE(with.tidying.untidy());
  ASSERT_EQ(with.memory.unmap(region), 0);
  int turns = 0;
  for (; turns < 100 && with.tidying.untidy(); ++turns) with.tidying.turn();
  EXPECT_GE(turns, 2) << "no turn frees all of it";
  EXPECT_LE(turns, 3);
}

}  // namespace
}  // namespace stp::test
