// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/outbox.h"

#include <array>

#include "stp/transfer/clock.h"
#include "tests/stp/node/write_fixture.h"
#include "tests/stp/transfer/parts.h"

namespace stp::test {
namespace {

namespace flag = wire::flag;

class OutboxTest : public Parts {
 protected:
  void add_put(std::uint32_t r_id, bool asks) {
    outbox.add_put(r_id, true, asks).header = wire::to_header(wire::Data{.r_id = r_id});
  }
  std::vector<bool> asks() {
    std::vector<bool> all;
    while (const auto header = next()) all.push_back(header->has(flag::kSendState));
    return all;
  }
  static wire::Data block(std::uint32_t offset) {
    return {.r_mx = 1, .r_offset = offset, .b_num = 4, .r_id = 9};
  }
};

TEST_F(OutboxTest, hands_out_each_request_once_and_in_order) {
  outbox.add(wire::to_header(wire::NoOperation{.b_num = 1}));
  outbox.add(wire::to_header(wire::NoOperation{.b_num = 2}));
  EXPECT_EQ(next_is<wire::NoOperation>().b_num, 1U);
  EXPECT_EQ(next_is<wire::NoOperation>().b_num, 2U);
  EXPECT_FALSE(next());
}

TEST_F(OutboxTest, knows_what_the_node_has_not_taken) {
  EXPECT_EQ(outbox.first_not_taken(), Outbox::kNone);
  outbox.add(wire::to_header(wire::NoOperation{}));
  outbox.add(wire::to_header(wire::NoOperation{}));
  EXPECT_EQ(outbox.first_not_taken(), 1U);
  EXPECT_FALSE(outbox.waits_for_node()) << "nothing has been handed out";
  while (next()) {
  }
  EXPECT_TRUE(outbox.taken(1));
  EXPECT_EQ(outbox.first_not_taken(), 2U);
  EXPECT_FALSE(outbox.taken(1)) << "no more than before";
  EXPECT_TRUE(outbox.taken(2));
  EXPECT_EQ(outbox.taken_number(), 2U);
  EXPECT_FALSE(outbox.waits_for_node());
}

TEST_F(OutboxTest, ignores_a_count_of_requests_that_were_never_handed_out) {
  outbox.add(wire::to_header(wire::NoOperation{}));
  next();
  EXPECT_TRUE(outbox.taken(1'000));
  EXPECT_EQ(outbox.first_not_taken(), Outbox::kNone);
  EXPECT_EQ(outbox.taken_number(), 1U);
}

TEST_F(OutboxTest, queues_an_answer_once_however_often_the_peer_asks) {
  for (int i = 0; i < 100; ++i) outbox.tell_seen(5, 6);
  outbox.refuse(Op::kMemoryRegionAvailable, 7);
  const auto seen = next_is<wire::RequestAnswer>();
  EXPECT_EQ(seen.i_id, 5U);
  EXPECT_EQ(seen.r_id, 6U);
  const auto refused = next();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->op(), Op::kMemoryRegionAvailable);
  EXPECT_TRUE(refused->has(flag::kReject));
  EXPECT_EQ(wire::decode_as<wire::MemoryRegionAvailable>(*refused).i_id, 7U);
  EXPECT_FALSE(next());
  outbox.tell_seen(5, 6);
  EXPECT_TRUE(next()) << "the first one has left";
}

TEST_F(OutboxTest, queues_a_bounded_number_of_answers) {
  for (std::uint32_t i = 0; i < 3'000; ++i) outbox.tell_seen(i, i);
  EXPECT_EQ(node_takes().size(), 1'024U);
}

// protocol: 9.27
TEST_F(OutboxTest, of_short_puts_that_leave_together_the_last_one_asks) {
  for (int i = 0; i < 3; ++i) add_put(9, true);
  add_put(8, true);
  EXPECT_EQ(asks(), (std::vector<bool>{false, false, true, true})) << "for each region";
}

// protocol: 9.27
TEST_F(OutboxTest, of_short_puts_for_which_nobody_waits_one_in_32_asks) {
  std::vector<bool> expected(70);
  expected[31] = expected[63] = true;
  for (int i = 0; i < 70; ++i) add_put(9, false);
  EXPECT_EQ(asks(), expected);
}

TEST_F(OutboxTest, knows_which_short_puts_the_node_has_not_taken) {
  for (int i = 0; i < 3; ++i) add_put(9, true);
  outbox.add(wire::to_header(wire::NoOperation{}));
  for (int i = 0; i < 2; ++i) add_put(9, true);
  add_put(8, true);
  outbox.forget_data(8);  // the number of that one is left out
  add_put(9, true);
  for (std::uint32_t handed = 0; handed < 7; ++handed) ASSERT_TRUE(next());
  const std::array<std::uint64_t, 8> first{1, 2, 3, 4, 5, 6, 8, Outbox::kNone};
  for (std::uint32_t taken = 0; taken < first.size(); ++taken) {
    EXPECT_EQ(outbox.taken(taken), taken != 0);
    EXPECT_EQ(outbox.first_not_taken(), first[taken]) << taken;
    EXPECT_EQ(outbox.waits_for_node(), taken < 7);
  }
  EXPECT_EQ(outbox.taken_number(), 8U);
  EXPECT_TRUE(clock.is_idle());
  add_put(9, true);
  next();
  EXPECT_EQ(outbox.first_not_taken(), 9U) << "the next ones begin anew";
  EXPECT_TRUE(outbox.taken(1'000));
  EXPECT_EQ(outbox.taken_number(), 9U);
}

TEST_F(OutboxTest, makes_the_last_request_ask_only_if_it_is_data_of_the_region) {
  EXPECT_FALSE(outbox.ask_with_last(9)) << "nothing is queued";
  add_put(9, false);
  EXPECT_FALSE(outbox.ask_with_last(8));
  EXPECT_TRUE(outbox.ask_with_last(9));
  EXPECT_EQ(asks(), std::vector<bool>{true});
}

TEST_F(OutboxTest, forgets_the_unsent_data_of_a_transfer_and_nothing_else) {
  add_put(9, false);
  add_put(8, false);
  outbox.add(wire::to_header(wire::End{.r_id = 9, .i_id = 1}));
  outbox.forget_data(9);
  EXPECT_EQ(next_is<wire::Data>().r_id, 8U);
  EXPECT_EQ(next_is<wire::End>().r_id, 9U);
  EXPECT_FALSE(next());
}

// protocol: 10.15
TEST_F(OutboxTest, knows_that_data_is_leaving_until_the_node_has_taken_it) {
  SendEntry sent{};
  sent.header = wire::to_header(block(1'000));
  sent.length = 500;
  outbox.add(sent);
  for (const bool handed_out : {false, true}) {
    if (handed_out) next();
    EXPECT_TRUE(outbox.is_leaving(block(1'000), 500, 14));
    EXPECT_TRUE(outbox.is_leaving(block(1'024), 476, 14)) << "a part of it";
    EXPECT_FALSE(outbox.is_leaving(block(0), 1'500, 14)) << "it begins later";
    EXPECT_FALSE(outbox.is_leaving(block(1'000), 501, 14)) << "it ends before";
  }
  taken();
  EXPECT_FALSE(outbox.is_leaving(block(1'000), 500, 14));
}

// protocol: 10.18
TEST_F(OutboxTest, is_stuck_when_the_node_takes_nothing) {
  outbox.add(wire::to_header(wire::NoOperation{}));
  outbox.add(wire::to_header(wire::NoOperation{}));
  while (next()) {
  }
  EXPECT_EQ(clock.deadline(), clock.now() + kProgressPatience);
  pass(kProgressPatience - 1);
  outbox.taken(1);
  pass(kProgressPatience - 1);
  outbox.expire();
  EXPECT_FALSE(outbox.is_stuck()) << "it took one in between";
  pass(1);
  outbox.expire();
  EXPECT_TRUE(outbox.is_stuck());
}

TEST_F(OutboxTest, drops_what_is_queued_when_the_connection_ends) {
  outbox.add(wire::to_header(wire::NoOperation{}));
  outbox.close(-ECONNRESET);
  EXPECT_FALSE(next());
  EXPECT_EQ(outbox.ended(), -ECONNRESET);
}

// With a ring, whose other end a Node has.
class Drafts : public OutboxTest {
 protected:
  static constexpr ChannelGeometry kGeometry{.slots = 20, .credits = 4};

  Drafts() { outbox.write_to(user); }

  bool leave() { return outbox.transmit(user); }
  // The Node takes up to `most` requests: the region or the operation of each, and whether it asks.
  struct Taken {
    Op op;
    std::uint32_t r_id;
    bool asks;
    friend bool operator==(const Taken&, const Taken&) = default;
  };
  std::vector<Taken> take(std::size_t most = 100) {
    std::vector<Taken> all;
    for (SendEntry entry; all.size() < most && node.peek(entry); node.skip()) {
      EXPECT_EQ(entry.payload_length + entry.limited + entry.may_be_marked, 0);
      EXPECT_EQ(entry.destination_mac, 0U);
      const auto& h = entry.header;
      all.push_back({h.op(), h.op() == Op::kData ? h.d_id : 0, h.has(flag::kSendState)});
    }
    node.publish_taken();
    outbox.taken(user.taken());
    return all;
  }
  static Taken put(std::uint32_t r_id, bool asks) { return {Op::kData, r_id, asks}; }
  static constexpr Taken kNop{Op::kNoOperation, 0, false};

  ChannelMemory memory{kGeometry};
  NodeChannel node{memory.data(), kGeometry};
  UserChannel user{memory.data()};
};

// protocol: 9.27
TEST_F(Drafts, are_seen_by_the_node_when_they_leave_and_the_last_one_asks) {
  for (int i = 0; i < 3; ++i) add_put(9, true);
  add_put(8, true);
  EXPECT_FALSE(outbox.empty());
  EXPECT_EQ(outbox.first_not_taken(), 1U);
  EXPECT_FALSE(outbox.waits_for_node());
  EXPECT_TRUE(take().empty());
  EXPECT_TRUE(leave());
  EXPECT_TRUE(outbox.empty());
  EXPECT_TRUE(outbox.waits_for_node());
  EXPECT_EQ(take(), (std::vector{put(9, false), put(9, false), put(9, true), put(8, true)}));
  EXPECT_FALSE(outbox.waits_for_node());
  EXPECT_EQ(outbox.taken_number(), 4U);
  EXPECT_FALSE(leave());
}

TEST_F(Drafts, leave_before_what_was_added_later) {
  add_put(9, true);
  outbox.add(wire::to_header(wire::NoOperation{}));
  add_put(9, true);
  EXPECT_TRUE(leave());
  EXPECT_EQ(take(1), std::vector{put(9, true)});
  EXPECT_EQ(outbox.first_not_taken(), 2U);
  EXPECT_EQ(take(), (std::vector{kNop, put(9, true)}));
  EXPECT_EQ(outbox.first_not_taken(), Outbox::kNone);
}

// protocol: 9.27
TEST_F(Drafts, that_find_the_ring_full_are_queued_and_covered_by_the_last_one) {
  for (int i = 0; i < 6; ++i) add_put(9, true);
  EXPECT_TRUE(leave());
  EXPECT_EQ(take(), (std::vector(4, put(9, false))));
  EXPECT_EQ(outbox.first_not_taken(), 5U);
  EXPECT_TRUE(leave());
  EXPECT_EQ(take(), (std::vector{put(9, false), put(9, true)}));
}

TEST_F(Drafts, of_a_region_are_forgotten_and_the_others_keep_their_numbers_and_order) {
  add_put(9, true);
  add_put(8, true);
  add_put(9, true);
  outbox.add(wire::to_header(wire::NoOperation{}));
  outbox.forget_data(9);
  EXPECT_EQ(outbox.first_not_taken(), 2U);
  add_put(8, true);
  EXPECT_TRUE(leave());
  EXPECT_EQ(take(), (std::vector{put(8, true), kNop, put(8, true)}));
  EXPECT_EQ(outbox.taken_number(), 5U);
}

// The next ones begin with the first place of the ring.
TEST_F(Drafts, are_forgotten_though_the_node_has_taken_all_before_them) {
  add_put(7, false);
  leave();
  add_put(9, true);
  add_put(8, true);
  EXPECT_EQ(take(), std::vector{put(7, false)});
  outbox.forget_data(9);
  EXPECT_TRUE(leave());
  EXPECT_EQ(take(), std::vector{put(8, true)});
}

TEST_F(Drafts, ask_after_all_if_somebody_waits) {
  add_put(9, false);
  EXPECT_FALSE(outbox.ask_with_last(8));
  EXPECT_TRUE(outbox.ask_with_last(9));
  leave();
  EXPECT_EQ(take(), std::vector{put(9, true)});
  EXPECT_FALSE(outbox.ask_with_last(9)) << "it has left";
}

TEST_F(Drafts, are_dropped_when_the_connection_ends) {
  add_put(9, true);
  outbox.close(-ECONNRESET);
  EXPECT_TRUE(outbox.empty());
  EXPECT_FALSE(leave());
  EXPECT_TRUE(take().empty());
}

}  // namespace

// A turn is delayed between reading the clock and sending a frame: the timeout of the frame must
// count from when it was sent.

namespace {

using wire::Op;

class Departure : public Writing {
 protected:
  static constexpr Time kHeldUp = 7 * kMillisecond;
  static constexpr Time kFirst = 10 * kMillisecond;  // before anything has been measured

  void SetUp() override { start({.recover = true}); }

  // `host` sends its frames up to `op`, and they are lost. The clock is read late after that.
  void leave_late(Host& host, Op op) {
    auto frame = take(host);
    while (frame && parsed(*frame).header.op() != op) frame = take(host);
    ASSERT_TRUE(frame);
    now += kHeldUp;
    while (take(host)) {
    }
  }
  // Waits until it is sent again, late too. Returns how long that took.
  Time again(Host& host, Op op) {
    const auto begun = now;
    while (now < begun + kSecond) {
      now = std::max(now, host.node.next_deadline());
      host.node.expire(now);
      const auto frame = take(host);
      if (!frame || parsed(*frame).header.op() != op) continue;
      const auto after = now - begun;
      now += kHeldUp;
      take(host);
      return after;
    }
    return kNever;
  }
};

// protocol: 10.20
TEST_F(Departure, of_a_request_for_a_connection_begins_its_clock) {
  Connection other;
  other.memory = std::make_unique<ChannelMemory>(ChannelGeometry{64, 64});
  ASSERT_EQ(a.node.connect(endpoint_a, kMacB, 3000, other.memory->data(), 78, other.id, now), 0);
  leave_late(a, Op::kRequestConnection);
  EXPECT_EQ(again(a, Op::kRequestConnection), kFirst);
  EXPECT_EQ(again(a, Op::kRequestConnection), 2 * kFirst) << "of each repeat as well";
}

// protocol: 10.20
TEST_F(Departure, of_a_request_for_the_end_begins_its_clock) {
  a.node.close(ca.id, true, now);
  leave_late(a, Op::kRequestDisconnect);
  EXPECT_EQ(again(a, Op::kRequestDisconnect), kFirst);
}

// protocol: 10.20
TEST_F(Departure, of_the_agreement_to_an_end_begins_its_clock) {
  a.node.close(ca.id, true, now);
  arrive(b, *take(a));
  leave_late(b, Op::kDisconnectAnswer);
  EXPECT_EQ(again(b, Op::kDisconnectAnswer), kFirst);
}

// protocol: 10.20
TEST_F(Departure, of_a_question_about_slots_begins_its_clock) {
  for (int i = 0; i < 32; ++i) put(a, ca, control(Op::kNoOperation));
  leave_late(a, Op::kRequestState);
  EXPECT_EQ(again(a, Op::kRequestState), kFirst);
}

// protocol: 10.20, 10.21, 10.3
TEST_F(Departure, of_a_grant_begins_the_data_timeout) {
  put(a, ca, rts(1'000));
  settle();
  put(b, cb, cts());
  leave_late(b, Op::kClearToSend);
  EXPECT_EQ(again(b, Op::kRequestState), 4 * kFirst) << "which asks whether it was seen";
  EXPECT_EQ(again(b, Op::kRequestState), kFirst);
}

TEST(Departures, KnowUntilWhenARequestWaited) {
  Departures departures;
  EXPECT_EQ(departures.before(1), 0);
  departures.add(5, 100);
  departures.add(9, 200);
  EXPECT_EQ(departures.before(7), 100) << "the Node took it between then and 200";
  EXPECT_EQ(departures.before(9), 100);
  EXPECT_EQ(departures.before(10), 200) << "it has not been taken yet";
}

TEST(Departures, KnowTheLatestOneAfterTheyHaveBegunAgain) {
  Departures departures;
  departures.add(5, 100);
  departures.add(9, 200);
  departures.begin_again();
  departures.add(12, 300);
  EXPECT_EQ(departures.of(12), 300);
  EXPECT_EQ(departures.of(10), 300);
  EXPECT_LE(departures.before(12), 200) << "nothing later is known of";
  departures.add(13, 400);
  EXPECT_EQ(departures.of(12), 300);
  EXPECT_EQ(departures.before(13), 300);
}

}  // namespace
}  // namespace stp::test
