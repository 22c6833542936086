// SPDX-License-Identifier: BSD-3-Clause
// Rules of docs/protocol.md, section 5.
#include <set>

#include "stp/channel/retry.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

using wire::Op;

class ConnectionRules : public TwoNodes {
 protected:
  VcInfo info(Host& host, const Connection& c) {
    VcInfo out{};
    EXPECT_EQ(host.node.vc_info(c.id, out), 0);
    return out;
  }
};

// Returns 0 sometimes, which a Key must never be.
class OftenZero : public Random {
 public:
  std::uint32_t next() override { return ++calls_ % 3 == 0 ? calls_ : 0; }

 private:
  std::uint32_t calls_ = 0;
};

// protocol: 5.5
TEST_F(ConnectionRules, keys_are_drawn_from_the_random_source_and_never_0) {
  OftenZero random;
  Node node({.mac = kMacA, .vlan = {}}, random);
  EndpointId endpoint = kNoneId;
  ASSERT_EQ(node.open_endpoint({}, endpoint), 0);
  std::set<std::uint32_t> keys;
  std::vector<std::unique_ptr<ChannelMemory>> channels;
  for (int i = 0; i < 20; ++i) {
    channels.push_back(std::make_unique<ChannelMemory>(ChannelGeometry{64, 64}));
    VcId id = kNoneId;
    ASSERT_EQ(node.connect(endpoint, kMacB, 3000, channels.back()->data(), 0, id, now), 0);
    VcInfo vc{};
    ASSERT_EQ(node.vc_info(id, vc), 0);
    keys.insert(vc.local_key);
  }
  EXPECT_EQ(keys.size(), 20U);
  EXPECT_FALSE(keys.contains(0));
}

// protocol: 5.8
TEST_F(ConnectionRules, an_answer_counts_only_while_connecting_with_the_right_names) {
  listener = b.open();
  ASSERT_EQ(b.node.listen(listener, 3000), 0);
  b.stock(listener);
  endpoint_a = a.open();
  begin_connect();
  arrive(b, *take(a));
  const auto answer = *take(b);
  const auto good = parsed(answer).header;
  auto wrong = good;
  ++wrong.d_key;
  inject(a, kMacB, wrong);
  inject(a, MacAddr{{2, 0, 0, 0, 0, 9}}, good);
  EXPECT_EQ(ca.user.state(), ChannelState::kConnecting);
  arrive(a, answer);
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
  const auto before = a.count(Counter::kBadState);
  auto again = good;
  again.param = 1;
  inject(a, kMacB, again);
  EXPECT_EQ(a.count(Counter::kBadState), before + 1);
  EXPECT_EQ(info(a, ca).remote_slots, good.param);
}

// protocol: 5.14
TEST_F(ConnectionRules, a_disconnect_may_overtake_the_answer) {
  listener = b.open();
  ASSERT_EQ(b.node.listen(listener, 3000), 0);
  b.stock(listener);
  endpoint_a = a.open();
  begin_connect();
  arrive(b, *take(a));
  ASSERT_TRUE(take(b));  // the CA is lost
  accept();
  ASSERT_EQ(b.node.close(cb.id, true, now), 0);
  settle();
  EXPECT_EQ(ca.user.state(), ChannelState::kPeerClosed);
  EXPECT_EQ(b.node.vc_count(), 0U) << "its RD was answered to the names that it gave";
}

// protocol: 5.20
TEST(RoundTripRules, timeouts_follow_rfc_6298_between_200_us_and_1_s) {
  RoundTrip trip;
  EXPECT_EQ(trip.timeout(), 10 * kMillisecond) << "before the first measurement";
  trip.sample(kMillisecond);
  EXPECT_EQ(trip.smoothed(), kMillisecond);
  EXPECT_EQ(trip.timeout(), 3 * kMillisecond) << "R + 4 * R/2";
  for (int i = 0; i < 200; ++i) trip.sample(kMicrosecond);
  EXPECT_EQ(trip.timeout(), 200 * kMicrosecond);
  for (int i = 0; i < 200; ++i) trip.sample(5 * kSecond);
  EXPECT_EQ(trip.timeout(), 50 * kMillisecond) << "pauses: it has been shorter";
  RoundTrip far;
  for (int i = 0; i < 200; ++i) far.sample(100 * kMillisecond);
  far.sample(5 * kSecond);
  EXPECT_EQ(far.timeout(), 400 * kMillisecond) << "four times the shortest";
  RoundTrip farther;
  for (int i = 0; i < 200; ++i) farther.sample(5 * kSecond);
  EXPECT_EQ(farther.timeout(), kSecond);
}

// protocol: 5.20
TEST(RoundTripRules, a_repeated_request_measures_nothing) {
  Retry retry;
  retry.start(0, kMillisecond);
  EXPECT_EQ(retry.measured(300), 300U);
  ASSERT_TRUE(retry.again(kMillisecond));
  EXPECT_EQ(retry.measured(2 * kMillisecond), 0U);
}

// protocol: 5.20
TEST(RoundTripRules, before_the_first_sample_the_timeout_is_longer_than_the_last_exchange) {
  Retry retry;
  RoundTrip trip;
  retry.start(0, trip.timeout());
  ASSERT_TRUE(retry.again(10 * kMillisecond));
  retry.measure(trip, 25 * kMillisecond);
  EXPECT_EQ(trip.timeout(), 50 * kMillisecond);
  retry.measure(trip, 5 * kSecond);
  EXPECT_EQ(trip.timeout(), 10 * kMillisecond) << "twice in a row: frames are being lost";
  retry.measure(trip, 5 * kSecond);
  EXPECT_EQ(trip.timeout(), kSecond);
  trip.sample(20 * kMillisecond);
  retry.measure(trip, 5 * kSecond);
  EXPECT_EQ(trip.timeout(), 60 * kMillisecond) << "only samples count from now on";
}

// protocol: 5.22
TEST_F(ConnectionRules, a_disconnect_is_not_given_up_before_a_second_however_fast_the_link) {
  connect();
  ASSERT_EQ(a.node.close(ca.id, true, now), 0);
  wire = [](const Frame&, bool) { return 0U; };
  pass(950 * kMillisecond);
  EXPECT_EQ(a.node.vc_count(), 1U);
  wire = nullptr;
  pass(2 * kSecond);
  EXPECT_EQ(a.node.vc_count(), 0U);
  EXPECT_EQ(cb.user.state(), ChannelState::kPeerClosed) << "the peer was only slow, and has heard";
}

// protocol: 5.24
TEST_F(ConnectionRules, a_peer_whose_frames_arrive_lives_though_it_leaves_questions_unanswered) {
  connect();
  const auto at_a = info(a, ca);
  wire = [](const Frame&, bool) { return 0U; };
  wire::Header nop;
  nop.op_flags = wire::op_flags(Op::kNoOperation);
  nop.d_port = at_a.local_port;
  nop.s_port = at_a.remote_port;
  nop.d_key = at_a.local_key;
  for (int i = 0; i < 20; ++i) {
    pass(kSecond);
    inject(a, kMacB, nop);
    get(ca);
  }
  EXPECT_EQ(ca.user.state(), ChannelState::kOpen);
  pass(20 * kSecond);
  EXPECT_EQ(ca.user.state(), ChannelState::kFailed) << "silence ends it";
}

}  // namespace
}  // namespace stp::test
