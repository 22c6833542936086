// SPDX-License-Identifier: BSD-3-Clause
// Slots: an operation is sent only if the receiver has room for it (protocol, section 6).
#include <algorithm>
#include <optional>
#include <utility>

#include "tests/stp/node/mechanisms.h"
#include "tests/stp/node/nops_fixture.h"

namespace stp::test {
namespace {

using wire::Op;

class Slots : public Nops {};

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

// The user's own question is answered with no credit while the Node has no open question. The Node
// must then ask by itself, because a Node's own operation may wait for a Slot.
// protocol: 6.7
TEST_F(Slots, no_credit_in_an_answer_to_the_user_makes_the_node_ask_again) {
  connect({}, {.slots = 5});
  auto ask = nop(5);
  ask.header.op_flags |= wire::flag::kSendState;
  ask.header.sync = 77;
  for (const auto& entry : {nop(1), nop(2), nop(3)}) put(a, ca, entry);
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
  for (const auto& entry : {nop(4), ask}) put(a, ca, entry);
  while (auto frame = take(a)) late.push_back(*frame);
  ASSERT_EQ(late.size(), 5U);
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
  EXPECT_EQ(info.credit, 5U);
}

// It is longer than the first timeout, so the first question is repeated before its answer comes.
// protocol: 5.20
TEST_F(Slots, the_round_trip_of_a_long_path_is_learned) {
  constexpr Time kTrip = 150 * kMillisecond;
  connect({}, {.slots = 16});
  unsigned questions = 0;
  for (std::uint32_t i = 0; i < 40; ++i) {
    put(a, ca, nop(i));
    std::vector<Frame> late;
    const auto send = [&] {
      while (auto frame = take(a)) late.push_back(*frame);
    };
    send();
    for (const auto end = now + kTrip; now < end; now += kMillisecond) {
      a.node.expire(now);
      send();
    }
    for (const auto& frame : late) arrive(b, frame);
    while (auto frame = take(b)) arrive(a, *frame);
    while (get(cb)) {
    }
    questions += static_cast<unsigned>(std::count_if(late.begin(), late.end(), [](const Frame& f) {
      return parsed(f).header.op() == Op::kRequestState;
    }));
  }
  VcInfo info{};
  ASSERT_EQ(a.node.vc_info(ca.id, info), 0);
  EXPECT_EQ(info.round_trip, kTrip);
  EXPECT_LT(questions, 10U) << "none is repeated any more";
}

// No question is answered at once, so none of them measures the round trip.
// protocol: 5.20, 6.5
TEST_F(Slots, losses_before_the_round_trip_is_known_do_not_lengthen_the_next_wait) {
  connect({}, {.slots = 2});
  std::optional<std::uint32_t> lost;  // the last question: its first try
  wire = [&](const Frame& frame, bool to_b) {
    const auto header = parsed(frame).header;
    if (!to_b || header.op() != Op::kRequestState) return 1U;
    const auto rs = wire::decode_as<wire::RequestState>(header);
    return std::exchange(lost, rs.sync) == rs.sync ? 1U : 0U;
  };
  constexpr std::uint32_t kNops = 40;
  for (std::uint32_t i = 0; i < kNops; ++i) put(a, ca, nop(i));
  std::uint32_t next = 0;
  const auto begin = now;
  while (next < kNops && now < begin + 20 * kSecond) {
    pass(kMillisecond);
    while (auto e = get(cb)) EXPECT_EQ(e->header.s_id, next++);
  }
  EXPECT_EQ(next, kNops);
  EXPECT_LT(now - begin, kNops * 2 * RoundTrip::kInitial);
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
  wire = [left = 3](const Frame& f, bool) mutable -> unsigned {
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

class OfOneConnection : public ::testing::Test {
 protected:
  Mechanisms with;
  Vc& vc = with.open(1, 8);
};

// protocol: 6.5, 6.6
TEST_F(OfOneConnection, half_of_the_slots_spent_one_question_is_asked) {
  for (int i = 0; i < 3; ++i) with.states.spend(vc, 100);
  EXPECT_TRUE(with.sent().empty());
  for (int i = 0; i < 5; ++i) with.states.spend(vc, 100);
  EXPECT_EQ(with.sent(), std::vector{Op::kRequestState});
  EXPECT_FALSE(with.states.has_credit(vc, 100));
  EXPECT_TRUE(with.sent().empty()) << "one question is open at a time";
  EXPECT_EQ(with.common.counters.get(Counter::kSlotWaits), 1U);
}

// protocol: 6.7
TEST_F(OfOneConnection, an_answer_with_slots_makes_it_ready_and_one_without_lets_it_wait) {
  for (int i = 0; i < 8; ++i) with.states.spend(vc, 100);
  wire::Frame rsr;
  rsr.header = wire::to_header(wire::RequestStateResponse{
      .r_slots = 0, .sync = vc.questions.sync(), .b_num = wire::kNoId, .i_id = wire::kNoId});
  with.sent();
  with.states.on_response(vc, rsr, 200);
  EXPECT_TRUE(with.turns.empty());
  EXPECT_FALSE(with.states.has_credit(vc, 200));
  EXPECT_TRUE(with.sent().empty());
  const auto later = 200 + SlotQuestions::kFirstPause;
  with.states.ask_when_due(vc, later);
  EXPECT_EQ(with.sent(), std::vector{Op::kRequestState});
  rsr.header = wire::to_header(wire::RequestStateResponse{
      .r_slots = 2, .sync = vc.questions.sync(), .b_num = wire::kNoId, .i_id = wire::kNoId});
  with.states.on_response(vc, rsr, later);
  ASSERT_FALSE(with.turns.empty());
  EXPECT_EQ(&with.turns.next(), &vc);
  EXPECT_TRUE(with.states.has_credit(vc, later));
}

// protocol: 5.23, 5.24
TEST_F(OfOneConnection, only_a_silent_peer_is_given_up) {
  Time now = VcTimers::kKeepAlive;
  with.states.ask_when_due(vc, now);
  EXPECT_EQ(with.sent(), std::vector{Op::kRequestState});
  unsigned repeats = 0;
  for (; repeats < 100 && with.states.repeat(vc, now = vc.questions.repeat_at()); ++repeats)
    if (repeats < 20) vc.heard = now;
  EXPECT_GE(repeats, 20U) << "frames arrived";
  EXPECT_LT(repeats, 40U) << "nothing arrives any more";
}

}  // namespace
}  // namespace stp::test
