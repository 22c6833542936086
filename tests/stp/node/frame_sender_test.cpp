// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/frame_sender.h"

#include "tests/stp/node/nops_fixture.h"
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

class FrameSending : public Nops {};

TEST_F(FrameSending, one_frame_of_a_user_goes_before_the_states_that_its_peer_asked_for) {
  connect();
  for (int i = 0; i < 3; ++i) put(a, ca, control(Op::kRequestState));
  while (auto frame = take(a)) arrive(b, *frame);
  for (std::uint32_t i = 0; i < 2; ++i) put(b, cb, nop(i));
  EXPECT_EQ(burst(b),
            (std::vector{Op::kNoOperation, Op::kRequestStateResponse, Op::kRequestStateResponse,
                         Op::kRequestStateResponse, Op::kNoOperation}));
}

TEST_F(FrameSending, nothing_of_a_user_overtakes_the_answer_that_opens_its_connection) {
  listener = b.open();
  ASSERT_EQ(b.node.listen(listener, 3000), 0);
  b.stock(listener);
  endpoint_a = a.open();
  begin_connect();
  arrive(b, take(a).value());
  accept();
  put(b, cb, nop(1));
  EXPECT_EQ(burst(b), (std::vector{Op::kConnectionAnswer, Op::kNoOperation}));
}

TEST_F(FrameSending, a_user_that_breaks_its_ring_loses_its_connection_and_nothing_else) {
  connect();
  auto* const control_block = reinterpret_cast<ChannelControl*>(ca.memory->data());
  control_block->tx_head.store(1'000'000);
  a.node.kick(ca.id);
  settle();
  EXPECT_EQ(a.count(Counter::kRingBroken), 1U);
  EXPECT_EQ(ca.user.state(), ChannelState::kFailed);
  EXPECT_EQ(cb.user.state(), ChannelState::kPeerClosed);
  EXPECT_EQ(a.node.vc_count(), 0U);
}

// One more owner, with a connection of its own from A to B.
class TwoOwners : public Nops {
 protected:
  Connection other_a, other_b;

  void SetUp() override {
    connect();
    std::swap(ca, other_a);
    std::swap(cb, other_b);
    b.stock(listener);
    ASSERT_EQ(a.node.open_endpoint({}, endpoint_a, 2), 0);
    begin_connect();
    settle();
    accept();
  }
  // The S_ids of the frames that A sends in one call with room for `most`.
  std::vector<std::uint32_t> sent_by_a(std::size_t most) {
    std::vector<Frame> heads(most, Frame(a.node.frame_room()));
    std::vector<TxFrame> frames(most);
    for (std::size_t i = 0; i < most; ++i) frames[i].head = heads[i].data();
    frames.resize(a.node.transmit(frames, now));
    std::vector<std::uint32_t> numbers;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      heads[i].resize(frames[i].head_length);
      numbers.push_back(parsed(heads[i]).header.s_id);
    }
    return numbers;
  }
};

TEST_F(TwoOwners, share_a_call_in_turns_of_sixteen_frames) {
  for (std::uint32_t i = 0; i < 24; ++i) put(a, other_a, nop(100 + i));
  for (std::uint32_t i = 0; i < 4; ++i) put(a, ca, nop(200 + i));
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 16; ++i) expected.push_back(100 + i);
  for (std::uint32_t i = 0; i < 4; ++i) expected.push_back(200 + i);
  for (std::uint32_t i = 16; i < 24; ++i) expected.push_back(100 + i);
  EXPECT_EQ(sent_by_a(64), expected);
}

TEST_F(TwoOwners, refused_requests_of_one_do_not_keep_the_other_from_sending) {
  for (int i = 0; i < 60; ++i) put(a, other_a, control(Op::kRequestDisconnect));
  put(a, ca, nop(200));
  EXPECT_EQ(sent_by_a(64), std::vector<std::uint32_t>{200});
  EXPECT_EQ(other_a.user.refused(), 60U);
  EXPECT_EQ(a.count(Counter::kTxRefused), 60U);
}

class SentBlocks : public Writing {};

TEST_F(SentBlocks, memory_that_is_unmapped_in_the_middle_of_a_block_ends_it) {
  const auto permission = grant(3 * kStu);
  put(a, ca, data(permission, 3 * kStu));
  const auto first = take(a);
  ASSERT_TRUE(first);
  EXPECT_EQ(parsed(*first).stu.size(), kStu);
  ASSERT_EQ(a.node.unmap(source_region), 0);
  EXPECT_FALSE(take(a));
  EXPECT_EQ(ca.user.refused(), 1U);
  EXPECT_TRUE(has_event(a, Event::Kind::kRegionGone));
  EXPECT_TRUE(ca.user.done(ca.user.sent())) << "its user may use the memory again";
}

}  // namespace
}  // namespace stp::test
