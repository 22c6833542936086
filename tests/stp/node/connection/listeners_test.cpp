// SPDX-License-Identifier: BSD-3-Clause
// Option payload of RC and CA, and listeners whose user inspects an RC before it is answered.

#include "stp/node/connection/listeners.h"

#include <gtest/gtest.h>

#include "tests/stp/node/connection/connect_fixture.h"
#include "tests/stp/node/mechanisms.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

using wire::Op;

OptionPayload words(char fill) {
  OptionPayload made(std::in_place);
  made->fill(static_cast<std::byte>(fill));
  return made;
}

class Inspect : public TwoNodes {
 protected:
  // B listens and inspects requests. A sends one.
  void ask(Time patience = kSecond, const OptionPayload& option = {}) {
    listener = b.open({.inspect = true});
    ASSERT_EQ(b.node.listen(listener, 3000), 0);
    b.stock(listener, 2);
    endpoint_a = a.open({.connect_patience = patience});
    connect_with(option);
    settle();
  }
  void connect_with(const OptionPayload& option) {
    ca.memory = std::make_unique<ChannelMemory>(ChannelGeometry{64, 64});
    ASSERT_EQ(a.node.connect(endpoint_a, kMacB, 3000, ca.memory->data(), 77, ca.id, now, option),
              0);
    ca.user = UserChannel(ca.memory->data());
  }
  static VcInfo info(const Host& host, const Connection& c) {
    VcInfo out{};
    EXPECT_EQ(host.node.vc_info(c.id, out), 0);
    return out;
  }
  [[nodiscard]] std::size_t sent(Op op) const {
    return static_cast<std::size_t>(std::count_if(
        seen.begin(), seen.end(), [op](auto& f) { return parsed(f).header.op() == op; }));
  }
};

// protocol: 5.19
TEST_F(Inspect, what_comes_along_with_a_request_is_for_the_user_that_accepts) {
  listener = b.open();
  ASSERT_EQ(b.node.listen(listener, 3000), 0);
  b.stock(listener);
  endpoint_a = a.open();
  connect_with(words('q'));
  settle();
  accept();
  EXPECT_EQ(info(b, cb).state, VcState::kOpen) << "who does not inspect accepts at once";
  EXPECT_EQ(info(b, cb).peer_option, words('q'));
  EXPECT_EQ(info(a, ca).peer_option, std::nullopt);
}

// protocol: 5.19, 5.27, 5.28
TEST_F(Inspect, nothing_is_answered_before_the_user_has_decided) {
  ask(kSecond, words('q'));
  EXPECT_TRUE(has_event(b, Event::Kind::kAcceptReady));
  EXPECT_EQ(sent(Op::kConnectionAnswer), 0U);
  accept();
  EXPECT_EQ(info(b, cb).state, VcState::kAsked);
  EXPECT_EQ(info(b, cb).peer_option, words('q'));
  EXPECT_EQ(info(b, cb).peer_mac, kMacA);
  EXPECT_EQ(cb.user.state(), ChannelState::kConnecting);

  ASSERT_EQ(b.node.admit(cb.id, words('a'), now), 0);
  settle();
  EXPECT_EQ(info(a, ca).state, VcState::kOpen);
  EXPECT_EQ(info(a, ca).peer_option, words('a'));
  EXPECT_EQ(cb.user.state(), ChannelState::kOpen);
  put(a, ca, control(Op::kNoOperation));
  put(b, cb, control(Op::kNoOperation));
  settle();
  EXPECT_TRUE(get(ca));
  EXPECT_TRUE(get(cb));
  EXPECT_EQ(b.node.admit(cb.id, {}, now), -EISCONN);
  EXPECT_EQ(b.node.refuse(cb.id, {}, now), -EISCONN);
}

// protocol: 5.27, 5.31
TEST_F(Inspect, a_slow_decision_works_for_who_is_patient) {
  ask(30 * kSecond);
  accept();
  pass(20 * kSecond);
  EXPECT_EQ(sent(Op::kConnectionAnswer), 0U);
  EXPECT_GT(sent(Op::kRequestConnection), 20U) << "at intervals of a second at most";
  EXPECT_EQ(b.node.vc_count(), 1U);
  EXPECT_EQ(b.count(Counter::kDuplicateRc), sent(Op::kRequestConnection) - 1);
  ASSERT_EQ(b.node.admit(cb.id, {}, now), 0);
  settle();
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
}

// protocol: 5.31
TEST_F(Inspect, who_is_not_patient_gives_up_when_its_time_has_come) {
  ask(3 * kSecond);
  pass(4 * kSecond + kMillisecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kFailed);
  EXPECT_EQ(ca.user.error(), -ETIMEDOUT);
  accept();
  ASSERT_EQ(b.node.admit(cb.id, {}, now), 0);
  settle();
  EXPECT_EQ(cb.user.state(), ChannelState::kPeerClosed) << "its CA found nobody who waits";
}

// protocol: 5.28
TEST_F(Inspect, a_refusal_tells_why) {
  ask();
  accept();
  ASSERT_EQ(b.node.refuse(cb.id, words('n'), now), 0);
  settle();
  EXPECT_EQ(ca.user.state(), ChannelState::kFailed);
  EXPECT_EQ(ca.user.error(), -ECONNREFUSED);
  EXPECT_EQ(info(a, ca).peer_option, words('n'));
  EXPECT_EQ(b.count(Counter::kRcRejected), 1U);
  EXPECT_EQ(b.node.vc_count(), 0U);
  EXPECT_TRUE(has_event(b, Event::Kind::kVcGone)) << "its channel is free again";
  EXPECT_EQ(b.count(Counter::kVcOpened) + b.count(Counter::kVcClosed), 0U);
}

// protocol: 5.29
TEST_F(Inspect, a_lost_refusal_is_given_again_in_the_same_words) {
  ask();
  accept();
  wire = [lost = 0](const Frame& f, bool) mutable {
    return parsed(f).header.op() == Op::kConnectionAnswer && lost++ < 3 ? 0U : 1U;
  };
  ASSERT_EQ(b.node.refuse(cb.id, words('n'), now), 0);
  pass(kSecond);
  EXPECT_EQ(ca.user.error(), -ECONNREFUSED);
  EXPECT_EQ(info(a, ca).peer_option, words('n'));
  EXPECT_EQ(b.node.vc_count(), 0U) << "and nobody is asked a second time";
  EXPECT_EQ(b.count(Counter::kRcRejected), 1U);
}

// protocol: 5.28
TEST_F(Inspect, a_lost_answer_is_given_again_in_the_same_words) {
  ask();
  accept();
  wire = [lost = 0](const Frame& f, bool) mutable {
    return parsed(f).header.op() == Op::kConnectionAnswer && lost++ < 3 ? 0U : 1U;
  };
  ASSERT_EQ(b.node.admit(cb.id, words('a'), now), 0);
  pass(kSecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
  EXPECT_EQ(info(a, ca).peer_option, words('a'));
}

// protocol: 5.30
TEST_F(Inspect, undecided_a_request_is_refused_after_a_minute) {
  ask(100 * kSecond);
  accept();
  pass(59 * kSecond);
  EXPECT_EQ(info(b, cb).state, VcState::kAsked);
  pass(2 * kSecond);
  EXPECT_EQ(ca.user.error(), -ECONNREFUSED);
  EXPECT_EQ(info(b, cb).state, VcState::kFailed) << "its user still holds it";
  EXPECT_EQ(b.node.admit(cb.id, {}, now), -ETIMEDOUT);
  EXPECT_EQ(b.node.refuse(cb.id, {}, now), 0);
  EXPECT_EQ(b.count(Counter::kRcUndecided), 1U);
  EXPECT_EQ(b.node.vc_count(), 0U);
}

// protocol: 5.30
TEST_F(Inspect, a_request_whose_sender_has_fallen_silent_does_not_block_the_backlog) {
  ask();
  a.node.close(ca.id, true, now);
  pass(6 * kSecond);
  EXPECT_EQ(b.node.vc_count(), 0U);
  EXPECT_TRUE(has_event(b, Event::Kind::kVcGone));
  VcId none = kNoneId;
  EXPECT_EQ(b.node.accept(listener, none), -EAGAIN);
}

// protocol: 5.30
TEST_F(Inspect, who_decides_after_the_sender_has_fallen_silent_is_told_that_it_gave_up) {
  ask();
  accept();
  a.node.close(ca.id, true, now);
  pass(6 * kSecond);
  EXPECT_EQ(info(b, cb).state, VcState::kFailed);
  EXPECT_EQ(cb.user.error(), -ECONNABORTED);
  EXPECT_EQ(b.node.admit(cb.id, {}, now), -ECONNABORTED);
  EXPECT_EQ(b.node.refuse(cb.id, {}, now), 0);
  EXPECT_EQ(b.node.vc_count(), 0U);
}

// protocol: 5.28
TEST_F(Inspect, closing_what_was_asked_for_refuses_it) {
  ask();
  accept();
  ASSERT_EQ(b.node.close(cb.id, false, now), 0);
  settle();
  EXPECT_EQ(ca.user.error(), -ECONNREFUSED);
  EXPECT_EQ(b.node.vc_count(), 0U);
}

// protocol: 5.27, 5.18
TEST_F(Inspect, before_the_decision_nothing_else_reaches_the_user) {
  ask();
  accept();
  const auto at = info(b, cb);
  wire::Header h;
  h.op_flags = wire::op_flags(Op::kNoOperation);
  h.d_port = at.local_port;
  h.d_key = at.local_key;
  h.s_port = at.remote_port;
  inject(b, kMacA, h);
  EXPECT_EQ(b.count(Counter::kBadState), 1U);
  EXPECT_FALSE(get(cb));
}

}  // namespace

// Connections are set up and refused, also with loss (docs/protocol.md, section 5).

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

// strangers_test.cpp has what a requester sees of it.

namespace {

class NewcomersTest : public ::testing::Test {
 protected:
  static constexpr Time kMade = 1'000;

  // Makes as many unproven connections as one listener has, none accepted by the user.
  void SetUp() override {
    for (std::uint16_t i = 1; i <= Unproven::kOfListener; ++i) {
      auto& vc = with.open(i);
      vc.peer_mac = mac(i);
      vc.heard = kMade;
      endpoint.backlog.push_back(vc);
      ++endpoint.in_backlog;
      ++endpoint.vcs;
      newcomers.add(vc, kMade);
    }
  }
  static MacAddr mac(std::uint64_t number) { return MacAddr::from_u64(0x020000000000 + number); }

  Mechanisms with;
  Endpoint& endpoint = with.vcs.endpoint;
  stp::Strangers strangers{PortShare{}};
  KnownPeers peers;
  Dials dials{{with.common, with.vcs.table, with.departures, with.timers}};
  VcEndings endings{{with.common, with.vcs.table, with.turns, with.wake_ups, with.departures,
                     with.timers, with.pacing, with.memory, with.tidying, peers, strangers, dials}};
  Newcomers newcomers{{with.common, with.vcs.table, strangers, endings, with.states}};
};

// protocol: 5.34
TEST_F(NewcomersTest, a_few_are_taken_at_their_word_and_one_more_once_one_has_proved_itself) {
  EXPECT_TRUE(newcomers.must_prove(endpoint, mac(99), kMade));
  with.vcs.table.at(3)->heard = kMade + 1;
  const auto later = kMade + Unproven::kLookInterval;
  EXPECT_FALSE(newcomers.must_prove(endpoint, mac(99), later));
}

// protocol: 5.40
TEST_F(NewcomersTest, a_channel_is_reclaimed_only_from_one_that_was_asked_and_stayed_silent) {
  EXPECT_FALSE(newcomers.reclaim(endpoint, kMade));
  EXPECT_TRUE(with.sent().empty());
  const auto asked = kMade + Unproven::kSilence;
  ASSERT_FALSE(newcomers.reclaim(endpoint, asked)) << "they have time to answer";
  EXPECT_EQ(with.sent().size(), std::size_t{Unproven::kOfListener});
  with.vcs.table.at(1)->heard = asked + 1;
  EXPECT_TRUE(newcomers.reclaim(endpoint, asked + Unproven::kSilence));
  EXPECT_NE(with.vcs.table.at(1), nullptr) << "it has answered";
  EXPECT_EQ(with.vcs.table.at(2), nullptr) << "the oldest of the others";
  EXPECT_EQ(with.vcs.table.count(), Unproven::kOfListener - 1);
  EXPECT_EQ(with.sent(), std::vector{wire::Op::kRequestDisconnect});
  EXPECT_EQ(with.common.counters.get(Counter::kUnprovenEnded), 1U);
}

}  // namespace
}  // namespace stp::test
