// SPDX-License-Identifier: BSD-3-Clause
// Option payload of RC and CA, and listeners whose user inspects an RC before it is answered.
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
}  // namespace stp::test
