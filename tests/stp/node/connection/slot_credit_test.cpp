// SPDX-License-Identifier: BSD-3-Clause
// Slots: an operation is sent only if the receiver has room for it (protocol, section 6).
#include <array>

#include "stp/node/connection/slot_credit.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

using wire::Op;

class Slots : public TwoNodes {
 protected:
  SendEntry nop(std::uint32_t number) {
    auto e = control(Op::kNoOperation);
    e.header.s_id = number;
    return e;
  }
  // The operations that `from` sends in one burst. They arrive at `to` unless that is nullptr.
  std::vector<Op> burst(Host& from, Host* to = nullptr) {
    constexpr std::size_t kFrames = 8;
    std::vector<Frame> heads(kFrames, Frame(from.node.frame_room()));
    std::array<TxFrame, kFrames> frames;
    for (std::size_t i = 0; i < kFrames; ++i) frames[i].head = heads[i].data();
    const auto count = from.node.transmit(frames, now);
    std::vector<Op> ops;
    for (std::size_t i = 0; i < count; ++i) {
      heads[i].resize(frames[i].head_length);
      ops.push_back(parsed(heads[i]).header.op());
      if (to != nullptr) arrive(*to, heads[i]);
    }
    return ops;
  }
};

// protocol: 6.3, 6.7
TEST_F(Slots, a_sender_stops_when_the_receiver_has_no_room_and_goes_on_when_it_reads) {
  connect({}, {.slots = 8});
  for (std::uint32_t i = 0; i < 40; ++i) put(a, ca, nop(i));
  pass(100 * kMillisecond);
  std::uint32_t next = 0;
  while (auto e = get(cb)) EXPECT_EQ(e->header.s_id, next++);
  EXPECT_EQ(next, 8U);
  EXPECT_GT(a.count(Counter::kSlotWaits), 0U);
  for (int round = 0; round < 20; ++round) {
    pass(20 * kMillisecond);
    while (auto e = get(cb)) EXPECT_EQ(e->header.s_id, next++);
  }
  EXPECT_EQ(next, 40U);
  EXPECT_EQ(b.count(Counter::kSlotOverrun), 0U);
}

// protocol: 5.43
TEST_F(Slots, what_a_closed_connection_cannot_send_for_30_s_is_dropped) {
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
TEST_F(Slots, a_closed_connection_that_sends_little_at_a_time_goes_on) {
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

// The user's own question is answered with no credit while the Node has no open question. The Node
// must then ask by itself, because a Node's own operation may wait for a Slot.
// protocol: 6.7
TEST_F(Slots, no_credit_in_an_answer_to_the_user_makes_the_node_ask_again) {
  connect({}, {.slots = 4});
  auto ask = nop(3);
  ask.header.op_flags |= wire::flag::kSendState;
  ask.header.sync = 77;
  for (const auto& entry : {nop(1), nop(2), ask}) put(a, ca, entry);
  std::vector<Frame> late;  // delivered after the Node's own question and its answer
  while (auto frame = take(a)) {
    if (parsed(*frame).header.op() == Op::kRequestState)
      arrive(b, *frame);
    else
      late.push_back(*frame);
  }
  const auto all_free = take(b);
  ASSERT_TRUE(all_free);
  arrive(a, *all_free);
  put(a, ca, nop(4));
  while (auto frame = take(a)) late.push_back(*frame);
  ASSERT_EQ(late.size(), 4U);
  for (const auto& frame : late) arrive(b, frame);
  settle();
  ASSERT_TRUE(get(ca)) << "the answer to the user";
  VcInfo info{};
  ASSERT_EQ(a.node.vc_info(ca.id, info), 0);
  ASSERT_EQ(info.credit, 0U);
  while (get(cb)) {
  }
  pass(200 * kMicrosecond);
  ASSERT_EQ(a.node.vc_info(ca.id, info), 0);
  EXPECT_EQ(info.credit, 4U);
}

TEST_F(Slots, one_slot_is_enough) {
  connect({}, {.slots = 1});
  for (std::uint32_t i = 0; i < 10; ++i) put(a, ca, nop(i));
  std::uint32_t next = 0;
  for (int round = 0; round < 100 && next < 10; ++round) {
    pass(5 * kMillisecond);
    while (auto e = get(cb)) EXPECT_EQ(e->header.s_id, next++);
  }
  EXPECT_EQ(next, 10U);
  EXPECT_EQ(b.count(Counter::kSlotOverrun), 0U);
}

// protocol: 6.6
TEST_F(Slots, a_receiver_that_reads_keeps_the_sender_going_without_timers) {
  connect({}, {.slots = 16});
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    put(a, ca, nop(i));
    settle();
    while (auto e = get(cb)) EXPECT_EQ(e->header.s_id, next++);
  }
  EXPECT_EQ(next, 1000U);
  EXPECT_EQ(a.count(Counter::kSlotWaits), 0U);
}

// protocol: 6.8
TEST_F(Slots, a_sender_that_does_not_honour_them_overruns_only_itself) {
  connect({}, {.slots = 4});
  VcInfo info{};
  ASSERT_EQ(b.node.vc_info(cb.id, info), 0);
  wire::Header h;
  h.op_flags = wire::op_flags(Op::kNoOperation);
  h.d_port = info.local_port;
  h.s_port = info.remote_port;
  h.d_key = info.local_key;
  for (std::uint32_t i = 0; i < 10; ++i) {
    h.s_id = i;
    inject(b, kMacA, h);
  }
  EXPECT_EQ(b.count(Counter::kSlotOverrun), 6U);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(get(cb)->header.s_id, i);
  EXPECT_FALSE(get(cb));
}

// protocol: 6.2, 6.10, 6.11
TEST_F(Slots, state_responses_use_no_slot) {
  connect({.slots = 2});
  for (std::uint32_t i = 0; i < 12; ++i) {
    auto rs = control(Op::kRequestState);
    rs.header.sync = i;
    rs.header.b_num = wire::kNoId;
    rs.header.d_id = 5;
    put(a, ca, rs);
  }
  settle();
  put(b, cb, nop(1));
  put(b, cb, nop(2));
  settle();
  std::size_t responses = 0, others = 0;
  while (auto e = get(ca)) ++(e->header.op() == Op::kRequestStateResponse ? responses : others);
  EXPECT_EQ(responses, 12U);
  EXPECT_EQ(others, 2U);
}

// A program that has asked about many Transfers and is not scheduled while the answers arrive must
// not have to ask again: on a busy machine that would repeat endlessly. protocol: 6.11
TEST_F(Slots, the_answers_to_all_that_a_user_asked_wait_for_it) {
  connect({.slots = 64, .credits = 256});
  const auto ask = [this](std::uint32_t first, std::uint32_t count) {
    for (auto i = first; i < first + count; ++i) {
      auto rs = control(Op::kRequestState);
      rs.header.sync = i;
      rs.header.b_num = wire::kNoId;
      rs.header.d_id = 5;
      put(a, ca, rs);
    }
    settle();
  };
  ask(0, 64);
  EXPECT_EQ(a.count(Counter::kStateLost), 0U);
  ask(64, 1);
  EXPECT_EQ(a.count(Counter::kStateLost), 1U);
  for (std::uint32_t i = 0; i < 40; ++i) EXPECT_EQ(get(ca)->header.sync, i);
  ask(65, 41);
  EXPECT_EQ(a.count(Counter::kStateLost), 2U) << "40 places have come free";
}

// protocol: 6.11
TEST_F(Slots, a_reader_that_goes_back_breaks_its_own_ring) {
  connect({.slots = 8});
  for (std::uint32_t i = 0; i < 4; ++i) put(b, cb, nop(i));
  settle();
  while (get(ca))
    ;
  put(b, cb, nop(4));
  settle();
  reinterpret_cast<ChannelControl*>(ca.memory->data())->rx_tail.store(0);
  put(b, cb, nop(5));
  settle();
  put(a, ca, nop(6));
  settle();
  EXPECT_EQ(a.count(Counter::kRingBroken), 1U);
}

// protocol: 10.7
TEST_F(Slots, a_lost_request_state_is_asked_again) {
  connect({}, {.slots = 2});
  wire = [this, left = 3](const Frame& f, bool) mutable -> unsigned {
    return parsed(f).header.op() == Op::kRequestState && left-- > 0 ? 0 : 1;
  };
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < 20; ++i) put(a, ca, nop(i));
  for (int round = 0; round < 200 && next < 20; ++round) {
    pass(5 * kMillisecond);
    while (auto e = get(cb)) EXPECT_EQ(e->header.s_id, next++);
  }
  EXPECT_EQ(next, 20U);
}

TEST_F(Slots, a_user_that_breaks_its_ring_loses_its_connection_and_nothing_else) {
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

// protocol: 6.17
TEST_F(Slots, a_sleeping_user_is_woken_at_once_by_interrupt) {
  connect();
  b.events.clear();
  put(a, ca, nop(1));
  settle();
  EXPECT_FALSE(has_event(b, Event::Kind::kWake)) << "nobody sleeps";
  const auto seen_word = cb.user.begin_sleep();
  auto urgent = nop(2);
  urgent.header.op_flags |= wire::flag::kInterrupt;
  put(a, ca, urgent);
  settle();
  EXPECT_TRUE(has_event(b, Event::Kind::kWake));
  EXPECT_NE(cb.user.wake_word()->load(), seen_word);
  cb.user.end_sleep();
}

// protocol: 6.17
TEST_F(Slots, without_interrupt_a_sleeping_user_is_woken_once_and_within_50_microseconds) {
  connect();
  cb.user.begin_sleep();
  b.node.idle();
  b.events.clear();
  for (std::uint32_t i = 0; i < 3; ++i) put(a, ca, nop(i));
  settle();
  EXPECT_FALSE(has_event(b, Event::Kind::kWake)) << "more may follow";
  EXPECT_LE(b.node.next_deadline(), now + 50 * kMicrosecond);
  pass(50 * kMicrosecond);
  EXPECT_EQ(std::count_if(b.events.begin(), b.events.end(),
                          [](auto& e) { return e.kind == Event::Kind::kWake; }),
            1);
  cb.user.end_sleep();
}

// protocol: 6.17
TEST_F(Slots, a_sleeping_user_is_woken_as_soon_as_nothing_more_arrives) {
  connect();
  cb.user.begin_sleep();
  b.node.idle();
  b.events.clear();
  put(a, ca, nop(1));
  settle();
  b.node.idle();
  settle();  // fetches the events
  EXPECT_TRUE(has_event(b, Event::Kind::kWake));
  EXPECT_GT(b.node.next_deadline(), now + 50 * kMicrosecond) << "nobody is left to wake";
  cb.user.end_sleep();
}

// A user that was notified waits for its wake-up. Only a gathering user is notified of more before.
// protocol: 6.17
TEST_F(Slots, a_user_that_gathers_is_told_of_each_header_at_once) {
  connect();
  put(a, ca, nop(1));
  settle();  // from here on it is to be woken
  b.events.clear();
  put(a, ca, nop(2));
  settle();
  EXPECT_FALSE(has_event(b, Event::Kind::kNews)) << "it looks at this channel itself";
  cb.user.gather();
  for (std::uint32_t i = 3; i < 5; ++i) {
    b.events.clear();
    put(a, ca, nop(i));
    settle();
    EXPECT_TRUE(has_event(b, Event::Kind::kNews)) << i;
    EXPECT_FALSE(has_event(b, Event::Kind::kWake)) << "that can wait";
  }
  pass(50 * kMicrosecond);
  EXPECT_TRUE(has_event(b, Event::Kind::kWake));
}

// Only sent frames make room here: no other event would wake the user later.
TEST_F(Slots, a_user_that_sleeps_on_a_full_queue_learns_of_room_at_once) {
  connect();
  put(a, ca, nop(1));
  settle();
  pass(kMillisecond);
  put(a, ca, nop(2));
  ca.user.begin_sleep();
  a.events.clear();
  settle();
  EXPECT_TRUE(has_event(a, Event::Kind::kWake));
  ca.user.end_sleep();
}

TEST_F(Slots, a_user_that_was_about_to_sleep_learns_of_room_a_little_later) {
  connect();
  put(a, ca, nop(1));
  settle();
  ca.user.begin_sleep();
  a.events.clear();
  pass(50 * kMicrosecond);
  EXPECT_TRUE(has_event(a, Event::Kind::kWake));
  ca.user.end_sleep();
}

TEST_F(Slots, a_user_that_sleeps_learns_of_the_end_at_once) {
  connect();
  cb.user.begin_sleep();
  b.node.idle();
  b.events.clear();
  ASSERT_EQ(a.node.close(ca.id, true, now), 0);
  settle();
  EXPECT_TRUE(has_event(b, Event::Kind::kWake));
  EXPECT_TRUE(has_event(b, Event::Kind::kVcOver));
  cb.user.end_sleep();
}

TEST_F(Slots, what_answers_the_nodes_own_question_again_is_not_told_to_the_user) {
  connect({}, {.slots = 8});
  wire = [](const Frame& frame, bool) {
    return parsed(frame).header.op() == Op::kRequestStateResponse ? 2U : 1U;
  };
  for (std::uint32_t i = 0; i < 20; ++i) {
    put(a, ca, nop(i));
    settle();
    while (get(cb)) {
    }
  }
  EXPECT_FALSE(get(ca));
}

TEST_F(Slots, one_frame_of_a_user_goes_before_the_states_that_its_peer_asked_for) {
  connect();
  for (int i = 0; i < 3; ++i) put(a, ca, control(Op::kRequestState));
  while (auto frame = take(a)) arrive(b, *frame);
  for (std::uint32_t i = 0; i < 2; ++i) put(b, cb, nop(i));
  EXPECT_EQ(burst(b),
            (std::vector{Op::kNoOperation, Op::kRequestStateResponse, Op::kRequestStateResponse,
                         Op::kRequestStateResponse, Op::kNoOperation}));
}

TEST_F(Slots, nothing_of_a_user_overtakes_the_answer_that_opens_its_connection) {
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

// protocol: 6.4, 6.5
TEST(SlotCreditTest, answers_count_from_the_moment_of_their_question) {
  SlotCredit credit;
  credit.reset(10);
  for (int i = 0; i < 6; ++i) credit.spend();
  credit.asked(1);
  credit.spend();
  credit.asked(2);
  EXPECT_TRUE(credit.answered(2, 9));
  EXPECT_EQ(credit.credit(), 9U);
  EXPECT_FALSE(credit.answered(1, 10)) << "an older answer says less";
  EXPECT_FALSE(credit.answered(2, 10)) << "each answer counts once";
  credit.asked(3);
  for (int i = 0; i < 4; ++i) credit.spend();
  EXPECT_TRUE(credit.answered(3, 3));
  EXPECT_EQ(credit.credit(), 0U);
}

}  // namespace
}  // namespace stp::test
