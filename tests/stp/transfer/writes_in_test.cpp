// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/writes_in.h"

#include <gtest/gtest.h>

#include "stp/transfer/clock.h"
#include "tests/stp/transfer/parts.h"

namespace stp::test::writes_in_test {
namespace {

constexpr Landing kLanding{3, {2, 100}, 50'000};
constexpr std::uint32_t kTheirId = 900, kOurId = 8;

class WritesInTest : public Parts {
 protected:
  WritesIn writes{config, clock, outbox, completions, endings, finished};

  void begin(std::uint64_t length, std::uint32_t window = 2) {
    const OfferedWrite offer{.i_id = kTheirId,
                             .r_id = kOurId,
                             .msn = 5,
                             .length = length,
                             .max_block = 12,
                             .cts_wanted = window};
    writes.begin(offer, Kind::kReceive, 1, kLanding);
  }
  static ReceivedEntry block(const wire::ClearToSend& cts, std::uint32_t tag = 0) {
    return received(wire::Data{.r_mx = cts.r_mx,
                               .r_bufx = cts.r_bufx,
                               .r_offset = cts.r_offset,
                               .b_num = cts.b_num,
                               .r_id = cts.r_id,
                               .opaque = tag});
  }
  // The Node takes all requests. Returns their operations.
  std::vector<Op> all_leave() {
    auto ops = node_takes();
    writes.ends_left(outbox.first_not_taken());
    return ops;
  }
};

// protocol: 9.3, 9.25, 9.26
TEST_F(WritesInTest, grants_a_window_and_completes_with_the_last_block) {
  begin(10'000);
  const auto first = next_entry();
  ASSERT_TRUE(first && first->header.op() == Op::kClearToSend);
  EXPECT_EQ(first->limited, 1U);
  EXPECT_EQ(first->length, 4'096U);
  const auto zero = wire::decode_as<wire::ClearToSend>(first->header);
  EXPECT_EQ(zero.blocksize, 12U);
  const auto one = next_is<wire::ClearToSend>();
  EXPECT_EQ(one.r_offset, kLanding.at.offset + 4'096);
  EXPECT_FALSE(next()) << "the window is full";
  EXPECT_TRUE(writes.on_block(block(one)));
  const auto last = next_entry();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->length, 10'000U - 2 * 4'096U) << "never more than the write has";
  writes.on_block(block(wire::decode_as<wire::ClearToSend>(last->header)));
  EXPECT_FALSE(completion());
  writes.on_block(block(zero, 77));
  const auto done = completion();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->length, 10'000U);
  EXPECT_EQ(done->tag, 77U);
  EXPECT_EQ(done->message, 5U);
  EXPECT_EQ(writes.outstanding(), 0U);
  EXPECT_TRUE(finished.is_over(kTheirId, Op::kRequestAnswer));
  node_takes();
  EXPECT_TRUE(clock.is_idle()) << "what waited for its progress does not";
}

TEST_F(WritesInTest, ignores_headers_of_blocks_that_it_did_not_grant) {
  begin(10'000);
  const auto cts = next_is<wire::ClearToSend>();
  auto elsewhere = cts;
  elsewhere.r_offset += 1;
  EXPECT_TRUE(writes.on_block(block(elsewhere)));
  auto other = cts;
  other.r_id = kOurId + 1;
  EXPECT_FALSE(writes.on_block(block(other))) << "it is of something else";
  next();
  writes.on_block(block(cts));
  EXPECT_TRUE(next());
  writes.on_block(block(cts));
  EXPECT_FALSE(next()) << "the same Block again";
}

// protocol: 9.24
TEST_F(WritesInTest, tells_a_peer_that_repeats_its_rts_that_it_is_known) {
  begin(100);
  next();
  EXPECT_FALSE(writes.repeats(kTheirId + 1));
  EXPECT_TRUE(writes.repeats(kTheirId));
  EXPECT_EQ(next_is<wire::RequestAnswer>().r_id, kOurId);
}

// protocol: 9.18
TEST_F(WritesInTest, returns_memory_when_the_node_has_taken_the_end) {
  begin(100);
  ASSERT_TRUE(writes.cancel(1));
  EXPECT_FALSE(completion()) << "the peer may still write";
  ASSERT_TRUE(writes.cancel(1)) << "it still is outstanding";
  EXPECT_EQ(all_leave(), (std::vector<Op>{Op::kClearToSend, Op::kEnd}));
  EXPECT_EQ(completion()->status, -ECANCELED);
  EXPECT_FALSE(writes.cancel(1));
}

// protocol: 9.43
TEST_F(WritesInTest, is_complete_if_the_rest_came_before_the_end_left) {
  begin(5'000, 2);
  const auto zero = next_is<wire::ClearToSend>(), one = next_is<wire::ClearToSend>();
  writes.on_block(block(zero));
  ASSERT_TRUE(writes.cancel(1));
  writes.on_block(block(one));
  EXPECT_EQ(completion()->status, 0);
  EXPECT_EQ(all_leave(), std::vector<Op>{Op::kEnd});
  EXPECT_FALSE(completion()) << "it completes once";
  EXPECT_FALSE(writes.cancel(1));
}

// protocol: 9.43
TEST_F(WritesInTest, grants_no_more_once_it_is_cancelled) {
  begin(10'000, 1);
  const auto zero = next_is<wire::ClearToSend>();
  ASSERT_TRUE(writes.cancel(1));
  writes.on_block(block(zero));
  EXPECT_FALSE(completion()) << "a Block is missing";
  EXPECT_EQ(all_leave(), std::vector<Op>{Op::kEnd});
  EXPECT_EQ(completion()->status, -ECANCELED);
}

TEST_F(WritesInTest, is_ended_once_if_both_sides_end_it) {
  begin(100);
  ASSERT_TRUE(writes.cancel(1));
  EXPECT_TRUE(writes.on_end({.r_id = kOurId, .i_id = kTheirId}));
  all_leave();
  EXPECT_EQ(completion()->status, -ECANCELED);
  EXPECT_FALSE(completion());
  EXPECT_EQ(writes.outstanding(), 0U);
}

TEST_F(WritesInTest, that_was_cancelled_says_so_when_the_connection_ends) {
  begin(100);
  ASSERT_TRUE(writes.cancel(1));
  writes.fail(-ENOTCONN);
  EXPECT_EQ(completion()->status, -ECANCELED);
  EXPECT_FALSE(writes.waits_for_node());
}

// protocol: 9.20
TEST_F(WritesInTest, ends_by_either_name) {
  begin(100);
  EXPECT_TRUE(writes.knows(kOurId, kTheirId));
  EXPECT_EQ(writes.find(kTheirId), kOurId);
  EXPECT_FALSE(writes.on_end({.r_id = kOurId + 1, .i_id = kTheirId}));
  EXPECT_TRUE(writes.on_end({.r_id = wire::kNoId, .i_id = kTheirId}));
  node_takes();
  EXPECT_EQ(completion()->status, -ECANCELED);
}

// protocol: 10.17
TEST_F(WritesInTest, gives_up_when_nothing_arrives) {
  begin(10'000);
  const auto cts = next_is<wire::ClearToSend>();
  pass(kProgressPatience - 1);
  writes.on_block(block(cts));
  pass(kProgressPatience - 1);
  writes.expire();
  EXPECT_EQ(writes.outstanding(), 1U) << "a Block came in between";
  pass(1);
  writes.expire();
  writes.expire();
  all_leave();
  EXPECT_EQ(writes.outstanding(), 0U);
  EXPECT_EQ(completion()->status, -ETIMEDOUT);
  EXPECT_FALSE(completion());
}

// A Block may take longer than that.
// protocol: 10.17, 13.19
TEST_F(WritesInTest, goes_on_while_blocks_come_in_parts) {
  writes.observe_path(0, 10, 7);
  begin(10'000);
  pass(kProgressPatience - 1);
  writes.observe_path(0, 10, 8);
  pass(kProgressPatience - 1);
  writes.observe_path(0, 10, 8);
  writes.expire();
  node_takes();
  EXPECT_EQ(writes.outstanding(), 1U) << "there was a step in between";
  EXPECT_FALSE(writes.waits_for_node());
  pass(1);
  writes.expire();
  all_leave();
  EXPECT_EQ(completion()->status, -ETIMEDOUT);
}

// protocol: 10.10
TEST_F(WritesInTest, makes_blocks_short_when_much_is_lost) {
  config.max_block = 20;
  const OfferedWrite offer{
      .i_id = kTheirId, .r_id = kOurId, .length = 50'000, .max_block = 20, .cts_wanted = 1};
  writes.begin(offer, Kind::kReceive, 1, kLanding);
  const auto cts = next_is<wire::ClearToSend>();
  EXPECT_EQ(cts.blocksize, 16U) << "all in one Block";
  writes.observe_path(50, 0, 0);
  writes.on_block(block(cts));
  writes.begin(offer, Kind::kReceive, 1, kLanding);
  EXPECT_EQ(next_is<wire::ClearToSend>().blocksize, config.receive_stu_log2) << "one STU";
}

// protocol: 10.17
TEST_F(WritesInTest, that_share_a_path_wait_for_each_other) {
  for (const bool shared : {false, true}) {
    writes.observe_path(0, shared ? 12 : 0, 0);
    const OfferedWrite other{.i_id = kTheirId + 1,
                             .r_id = kOurId + 1,
                             .msn = 6,
                             .length = 10'000,
                             .max_block = 12,
                             .cts_wanted = 1};
    begin(10'000, 1);
    writes.begin(other, Kind::kReceive, 2, kLanding);
    const auto first = next_is<wire::ClearToSend>();
    next();
    pass(kProgressPatience - kSecond);
    writes.on_block(block(first));
    pass(2 * kSecond);
    writes.expire();
    std::size_t ends = 0;
    for (const auto op : all_leave()) ends += op == Op::kEnd ? 1 : 0;
    EXPECT_EQ(ends, shared ? 0U : 1U);
    writes.fail(-ECANCELED);
    while (completion()) {
    }
  }
}

// protocol: 13.19
TEST_F(WritesInTest, grants_long_blocks_in_parts_if_the_peer_sends_them_so) {
  config.receive_stu_log2 = 8;
  config.max_block = 20;
  writes.observe_path(0, 10, 0);
  const Landing landing{3, {2, 100}, 600'000};
  struct Case {
    bool able;
    std::uint64_t length;
    bool in_parts;
  };
  for (const auto& each :
       {Case{false, 300'000, false}, Case{true, 300'000, true}, Case{true, 250'000, false}}) {
    const OfferedWrite offer{.i_id = kTheirId,
                             .r_id = kOurId,
                             .msn = 5,
                             .length = each.length,
                             .max_block = 20,
                             .cts_wanted = 1,
                             .repeats_missing = each.able,
                             .sends_parts = each.able};
    writes.begin(offer, Kind::kReceive, 1, landing);
    const auto granted = next_entry();
    ASSERT_TRUE(granted);
    EXPECT_EQ(granted->limited, each.in_parts ? kInParts : 1);
    EXPECT_EQ(wire::decode_as<wire::ClearToSend>(granted->header).blocksize,
              each.in_parts ? 16U : 10U);
    writes.fail(-ECANCELED);
  }
}

// Each takes a Slot, and nobody knows yet how many bytes the path holds.
// protocol: 13.19
TEST_F(WritesInTest, a_long_transfer_in_parts_has_256_blocks_at_most) {
  config.receive_stu_log2 = 13;
  config.max_block = 20;
  writes.observe_path(0, 12, 0);
  for (const unsigned length_log2 : {26U, 27U, 28U}) {
    const OfferedWrite offer{.i_id = kTheirId,
                             .r_id = kOurId,
                             .msn = 5,
                             .length = std::uint64_t{1} << length_log2,
                             .max_block = 20,
                             .cts_wanted = 1,
                             .repeats_missing = true,
                             .sends_parts = true};
    writes.begin(offer, Kind::kReceive, 1, {3, {2, 100}, offer.length});
    const auto granted = next_entry();
    ASSERT_TRUE(granted);
    EXPECT_EQ(wire::decode_as<wire::ClearToSend>(granted->header).blocksize, length_log2 - 8);
    writes.fail(-ECANCELED);
  }
}

// What comes at once waits for itself.
// protocol: 13.19
TEST_F(WritesInTest, grants_blocks_of_128_kib_in_parts_if_there_are_many) {
  config.receive_stu_log2 = 13;
  config.max_block = 20;
  struct Case {
    unsigned suits;
    std::uint64_t length;
    bool in_parts;
  };
  for (const auto& each :
       {Case{17, 2 << 20, true}, Case{17, 1 << 20, false}, Case{16, 2 << 20, false}}) {
    writes.observe_path(0, each.suits, 0);
    const OfferedWrite offer{.i_id = kTheirId,
                             .r_id = kOurId,
                             .msn = 5,
                             .length = each.length,
                             .max_block = 20,
                             .cts_wanted = 1,
                             .repeats_missing = true,
                             .sends_parts = true};
    writes.begin(offer, Kind::kReceive, 1, {3, {2, 100}, each.length});
    const auto granted = next_entry();
    ASSERT_TRUE(granted);
    EXPECT_EQ(granted->limited, each.in_parts ? kInParts : 1);
    writes.fail(-ECANCELED);
  }
}

// protocol: 13.13
TEST_F(WritesInTest, grants_many_short_blocks_while_the_path_suits_them) {
  config.cts_window = 4;
  writes.observe_path(0, 10, 0);
  begin(50'000, 100);
  EXPECT_EQ(next_is<wire::ClearToSend>().blocksize, 10U);
  for (unsigned i = 1; i < 49; ++i) ASSERT_TRUE(next());
  writes.observe_path(0, 0, 0);
  EXPECT_EQ(writes.cts_window(), 4U) << "it is not known any more that others use the path";
}

TEST_F(WritesInTest, completes_when_the_connection_ends) {
  begin(100);
  writes.fail(-ENOTCONN);
  EXPECT_EQ(completion()->status, -ENOTCONN);
}

}  // namespace
}  // namespace stp::test::writes_in_test

namespace stp::test {
namespace {

// protocol: 10.10
TEST(LossEstimate, while_nothing_is_known_blocks_are_short) {
  const LossEstimate loss;
  EXPECT_EQ(loss.block_stus_log2(10), 6U);  // 64 KiB
  EXPECT_EQ(loss.block_stus_log2(13), 3U);
  EXPECT_EQ(loss.block_stus_log2(16), 3U);  // 8 STUs at least
  EXPECT_EQ(loss.block_stus_log2(31), 3U);
}

// protocol: 10.10
TEST(LossEstimate, without_loss_blocks_are_as_long_as_may_be) {
  LossEstimate loss;
  loss.observe(255, 0);
  EXPECT_EQ(loss.block_stus_log2(10), 6U) << "too few to know";
  loss.observe(1, 0);
  EXPECT_EQ(loss.block_stus_log2(10), 15U);
  EXPECT_EQ(loss.rate(), 0.0);
}

// protocol: 10.10
TEST(LossEstimate, the_rate_of_a_steady_loss_is_found_and_blocks_fit_it) {
  LossEstimate loss;
  for (std::uint32_t i = 1; i <= 500; ++i) loss.observe(99, i);  // one STU of a hundred
  EXPECT_NEAR(loss.rate(), 0.01, 0.0001);
  // A CTS costs half an STU: 6 % of a Block of 8 and 3 % of one of 16. Repeats cost 4 % and 8 %.
  EXPECT_EQ(loss.block_stus_log2(10), 3U);
}

// protocol: 10.10, 10.23
TEST(LossEstimate, blocks_are_longer_where_what_is_missing_is_repeated_alone) {
  LossEstimate loss;
  EXPECT_EQ(loss.block_stus_log2(13, true), 3U) << "nothing is known yet";
  for (std::uint32_t i = 1; i <= 500; ++i) loss.observe(99, i);
  EXPECT_EQ(loss.block_stus_log2(10, true), 7U) << "1.28 STUs of 128 are lost";
  for (std::uint32_t i = 501; i <= 1'000; ++i) loss.observe(19, i);
  EXPECT_EQ(loss.block_stus_log2(10, true), 5U) << "1.6 STUs of 32";
  LossEstimate little;
  for (std::uint32_t i = 1; i <= 10; ++i) little.observe(100'000, i);
  EXPECT_EQ(little.block_stus_log2(10, true), 8U) << "more than a CTS can tell of";
}

TEST(LossEstimate, a_single_loss_after_much_traffic_changes_little) {
  LossEstimate loss;
  for (int i = 0; i < 100; ++i) loss.observe(1'000, 0);
  loss.observe(1, 1);
  EXPECT_LT(loss.rate(), 0.001);
  EXPECT_GT(loss.rate(), 0.0);
}

TEST(LossEstimate, if_all_is_lost_a_block_is_one_stu) {
  LossEstimate loss;
  for (std::uint32_t i = 1; i < 10; ++i) loss.observe(0, 100 * i);
  EXPECT_NEAR(loss.rate(), 1.0, 0.0001);
  EXPECT_EQ(loss.block_stus_log2(10), 0U);
  for (int i = 0; i < 100; ++i) loss.observe(256, 900);
  EXPECT_LT(loss.rate(), 0.0001) << "what is long ago counts less and less";
}

class OffersTest : public Parts {
 protected:
  WritesIn writes{config, clock, outbox, completions, endings, finished};
  Offers offers{outbox, completions, finished, writes};

  static constexpr std::uint32_t kFirstId = 900;

  // A write of the peer: message `msn`, called kFirstId + `msn` by it.
  void offer(std::uint32_t msn, std::uint64_t length = 100) {
    offers.add({.i_id = kFirstId + msn,
                .r_id = ids.next(),
                .msn = msn,
                .length = length,
                .max_block = 12,
                .cts_wanted = 1});
  }
  void post(Context context, std::uint64_t length = 100) {
    offers.post(context, {3, {static_cast<std::uint32_t>(context), 0}, length});
  }
  // Which message has which receive, by the CTS that leave: {message, context}.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> granted() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
    while (const auto header = next()) {
      if (header->op() != Op::kClearToSend) continue;
      const auto cts = wire::decode_as<wire::ClearToSend>(*header);
      all.emplace_back(cts.i_id - kFirstId, cts.r_bufx);
    }
    return all;
  }
  using Granted = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
};

// protocol: 9.21
TEST_F(OffersTest, take_receives_in_the_order_of_their_messages) {
  post(10);
  post(20);
  offer(2);
  EXPECT_EQ(granted(), Granted{}) << "the first message is on its way";
  offer(1);
  EXPECT_EQ(granted(), (Granted{{1, 10}, {2, 20}}));
  EXPECT_EQ(offers.outstanding(), 0U);
  EXPECT_TRUE(offers.empty());
  offer(4);
  offer(3);
  post(30);
  EXPECT_EQ(granted(), (Granted{{3, 30}}));
}

TEST_F(OffersTest, without_numbers_take_receives_as_they_arrive) {
  offer(0);
  offer(0, 99);
  post(10, 100);
  post(20, 99);
  EXPECT_EQ(granted().size(), 2U);
}

// protocol: 9.24
TEST_F(OffersTest, are_answered_while_they_wait) {
  offer(1);
  const auto r_id = next_is<wire::RequestAnswer>().r_id;
  EXPECT_TRUE(offers.repeats(kFirstId + 1));
  EXPECT_EQ(next_is<wire::RequestAnswer>().r_id, r_id);
  EXPECT_FALSE(offers.repeats(kFirstId + 2));
}

// protocol: 9.23
TEST_F(OffersTest, longer_than_their_receive_are_refused) {
  post(10);
  offer(1, 101);
  ASSERT_TRUE(next()->has(wire::flag::kReject));
  offer(2, 100);
  EXPECT_EQ(granted(), (Granted{{2, 10}})) << "the receive waits for one that fits";
}

// protocol: 9.22
TEST_F(OffersTest, that_are_taken_back_hold_nobody_up) {
  offer(1);
  offer(2);
  EXPECT_TRUE(offers.take_back(kFirstId + 1));
  EXPECT_FALSE(offers.take_back(kFirstId + 1));
  offers.skip(1);
  post(10);
  EXPECT_EQ(granted(), (Granted{{2, 10}}));
}

// protocol: 9.22
TEST_F(OffersTest, that_were_taken_back_before_they_arrive_start_nothing) {
  offers.skip(1);
  post(10);
  offer(1);
  EXPECT_EQ(granted(), Granted{});
  EXPECT_TRUE(offers.empty());
}

TEST_F(OffersTest, beyond_a_bound_are_refused) {
  for (std::uint32_t msn = 1; msn <= 1'024; ++msn) offer(msn);
  while (next()) {
  }
  offer(1'025);
  EXPECT_TRUE(next()->has(wire::flag::kReject));
  EXPECT_FALSE(offers.repeats(kFirstId + 1'025));
}

TEST_F(OffersTest, of_a_message_too_far_ahead_are_refused) {
  offer(1 + MessageOrder::kMaxAhead);
  EXPECT_TRUE(next()->has(wire::flag::kReject));
  EXPECT_TRUE(offers.empty());
}

TEST_F(OffersTest, wait_for_messages_that_come_another_way) {
  offer(2);
  EXPECT_FALSE(offers.waiting()) << "it is not its turn";
  offers.pass_message();
  const auto first = offers.waiting();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->message, 2U);
  EXPECT_EQ(offers.next_message(), 2U);
  offers.refuse_waiting();
  EXPECT_EQ(offers.next_message(), 3U);
  EXPECT_TRUE(finished.is_over(kFirstId + 2, Op::kRequestAnswer));
}

// protocol: 9.33
TEST_F(OffersTest, may_get_their_receive_ahead_of_their_turn) {
  offer(3);
  offer(2);
  const auto ahead = offers.waiting_ahead();
  ASSERT_TRUE(ahead);
  EXPECT_EQ(ahead->message, 2U);
  offers.receive_ahead(10, {3, {10, 0}, 100});
  EXPECT_EQ(offers.waiting_ahead()->message, 3U);
  EXPECT_EQ(granted(), (Granted{{2, 10}}));
  post(20);
  offer(1);
  EXPECT_EQ(granted(), (Granted{{1, 20}}));
  EXPECT_EQ(offers.next_message(), 3U) << "the second needs no turn";
}

TEST_F(OffersTest, leave_receives_that_are_taken_back_alone) {
  post(10);
  EXPECT_FALSE(offers.cancel(11));
  EXPECT_TRUE(offers.cancel(10));
  EXPECT_EQ(completion()->status, -ECANCELED);
  offer(1);
  EXPECT_EQ(granted(), Granted{});
}

TEST_F(OffersTest, are_gone_when_the_connection_ends) {
  offer(2);
  post(10);
  offers.fail(-ENOTCONN);
  EXPECT_EQ(completion()->context, 10U);
  EXPECT_TRUE(offers.empty());
  EXPECT_EQ(offers.outstanding(), 0U);
}

}  // namespace
}  // namespace stp::test
