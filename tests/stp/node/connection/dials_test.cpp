// SPDX-License-Identifier: BSD-3-Clause
// Many connections begun at once: Request_Connections take turns (protocol, 5.33).
#include <algorithm>

#include "stp/node/shards.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

using wire::Op;

class Dialing : public TwoNodes {
 protected:
  static constexpr unsigned kAtOnce = 16;
  Dialing() = default;
  explicit Dialing(const NodeConfig& base) : TwoNodes(base) {}
  void SetUp() override {
    listener = b.open();
    ASSERT_EQ(b.node.listen(listener, 3000), 0);
    endpoint_a = a.open();
  }
  void begin(unsigned count, EndpointId from, std::uint32_t uport = 3000) {
    for (; count > 0; --count) {
      auto& made = begun.emplace_back();
      made.memory = std::make_unique<ChannelMemory>(ChannelGeometry{64, 64});
      ASSERT_EQ(a.node.connect(from, kMacB, uport, made.memory->data(), 0, made.id, now), 0);
      made.user = UserChannel(made.memory->data());
    }
  }
  void begin(unsigned count) { begin(count, endpoint_a); }
  [[nodiscard]] std::size_t count(ChannelState state) const {
    std::size_t n = 0;
    for (const auto& made : begun) n += made.user.state() == state;
    return n;
  }
  // The Ports of the RCs since the last call.
  std::vector<std::uint16_t> ports_of_requests() {
    std::vector<std::uint16_t> ports;
    for (const auto& frame : seen)
      if (const auto h = parsed(frame).header; h.op() == Op::kRequestConnection)
        ports.push_back(h.s_port);
    seen.clear();
    return ports;
  }
  std::size_t requests() { return ports_of_requests().size(); }

  std::vector<Connection> begun;
};

// protocol: 5.33
TEST_F(Dialing, as_many_requests_leave_as_a_listener_can_be_expected_to_answer) {
  begin(2 * kAtOnce);
  settle();
  EXPECT_EQ(requests(), kAtOnce);
  pass(15 * kMillisecond);
  EXPECT_EQ(requests(), kAtOnce) << "those are repeated";
}

// protocol: 5.33
TEST_F(Dialing, an_answer_lets_the_next_one_go_in_the_order_in_which_they_were_begun) {
  b.stock(listener, 3);
  begin(kAtOnce + 5);
  settle();
  EXPECT_EQ(count(ChannelState::kOpen), 3U);
  const auto ports = ports_of_requests();
  EXPECT_EQ(ports.size(), kAtOnce + 3);
  EXPECT_TRUE(std::is_sorted(ports.begin(), ports.end()));
  b.stock(listener, 3 * kAtOnce);
  pass(15 * kMillisecond);
  EXPECT_EQ(count(ChannelState::kOpen), kAtOnce + 5) << "and nobody waited for a second interval";
}

// The newest requests have the shortest intervals: without this rule they would take every place
// that becomes free. protocol: 5.33
TEST_F(Dialing, an_answer_has_the_oldest_that_is_unanswered_sent_once_more) {
  begin(kAtOnce);
  pass(400 * kMillisecond);  // its interval is 320 ms by now
  begin(2);
  b.stock(listener, 1);
  requests();
  VcInfo oldest{};
  ASSERT_EQ(a.node.vc_info(begun[0].id, oldest), 0);
  a.node.close(begun[5].id, true, now);
  settle();
  const auto ports = ports_of_requests();
  ASSERT_EQ(ports.size(), 3U) << "the oldest, and the two that waited";
  EXPECT_EQ(ports[0], oldest.local_port);
  EXPECT_EQ(count(ChannelState::kOpen), 1U);
  EXPECT_EQ(begun[0].user.state(), ChannelState::kOpen);
}

TEST_F(Dialing, a_refusal_lets_the_next_one_go) {
  begin(3 * kAtOnce, endpoint_a, 4000);
  settle();
  EXPECT_EQ(count(ChannelState::kFailed), 3 * kAtOnce);
}

TEST_F(Dialing, one_that_is_closed_makes_room_and_one_that_waits_leaves_without_a_word) {
  begin(kAtOnce + 2);
  settle();
  requests();
  ASSERT_EQ(a.node.close(begun[kAtOnce].id, true, now), 0);
  settle();
  EXPECT_EQ(requests(), 0U);
  ASSERT_EQ(a.node.close(begun[0].id, true, now), 0);
  settle();
  EXPECT_EQ(requests(), 1U);
}

// protocol: 5.21
TEST_F(Dialing, those_that_have_waited_are_tried_as_often_as_others) {
  begin(kAtOnce + 1);
  pass(3 * kSecond);
  EXPECT_EQ(count(ChannelState::kFailed), kAtOnce);
  EXPECT_EQ(begun.back().user.state(), ChannelState::kConnecting);
  pass(3 * kSecond);
  EXPECT_EQ(begun.back().user.error(), -ETIMEDOUT);
}

TEST_F(Dialing, other_listeners_and_other_users_have_turns_of_their_own) {
  EndpointId other = kNoneId;
  ASSERT_EQ(a.node.open_endpoint({}, other, 2), 0);
  begin(2 * kAtOnce);
  settle();
  requests();
  begin(1, endpoint_a, 3001);
  begin(1, other);
  settle();
  EXPECT_EQ(requests(), 2U);
}

struct FourShards {
  Shards shards{4};
};

class DialingOfAShard : private FourShards, public Dialing {
 protected:
  DialingOfAShard()
      : Dialing(NodeConfig{.mac = {}, .max_stu = 13, .vlan = {}, .shards = &shards}) {}
};

// protocol: 5.33
TEST_F(DialingOfAShard, the_shards_of_an_address_divide_the_requests) {
  begin(kAtOnce);
  settle();
  EXPECT_EQ(requests(), kAtOnce / 4);
  b.stock(listener, kAtOnce);
  pass(2 * kSecond);
  EXPECT_EQ(count(ChannelState::kOpen), kAtOnce);
}

}  // namespace
}  // namespace stp::test
