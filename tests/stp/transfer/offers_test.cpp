// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/offers.h"

#include "tests/stp/transfer/parts.h"

namespace stp::test {
namespace {

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
