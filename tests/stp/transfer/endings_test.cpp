// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/endings.h"

#include <array>

#include "stp/transfer/clock.h"
#include "stp/transfer/ids.h"
#include "tests/stp/transfer/parts.h"

namespace stp::test {
namespace {

class EndingsTest : public Parts {
 protected:
  void end(std::uint32_t i_id, std::uint32_t msn = 0) {
    Completion c{};
    c.context = i_id;
    c.status = -ECANCELED;
    endings.end(900, i_id, c, msn);
  }
  void expire() {
    clock.stop();
    repeats.begin_round();
    endings.expire();
    repeats.end_round();
  }
};

// protocol: 9.18
TEST_F(EndingsTest, complete_when_the_peer_has_confirmed) {
  end(5);
  const auto request = next_is<wire::End>();
  EXPECT_EQ(request.r_id, 900U);
  EXPECT_EQ(request.i_id, 5U);
  EXPECT_FALSE(completion());
  EXPECT_EQ(endings.outstanding(), 1U);
  endings.on_end_ack({.i_id = 6});
  EXPECT_FALSE(completion()) << "it confirms another one";
  endings.on_end_ack({.i_id = 5});
  const auto done = completion();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->context, 5U);
  EXPECT_EQ(done->status, -ECANCELED);
  EXPECT_TRUE(endings.empty());
  endings.on_end_ack({.i_id = 5});
  EXPECT_FALSE(completion()) << "once";
}

TEST_F(EndingsTest, of_puts_and_others_keep_their_order) {
  completions.add_put(1, 0, 100);
  completions.add_put(2, -ECANCELED, 0);
  completions.add(Kind::kNotice, 3, 0).tag = 33;
  completions.add_put(4, 0, 400);
  for (const Context context : {1U, 2U, 3U, 4U}) {
    EXPECT_TRUE(completions.has_ready());
    const auto c = completion();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->context, context);
    EXPECT_EQ(c->kind, context == 3 ? Kind::kNotice : Kind::kPut);
    EXPECT_EQ(c->length, context == 1 ? 100U : context == 4 ? 400U : 0U);
    EXPECT_EQ(c->status, context == 2 ? -ECANCELED : 0);
    EXPECT_EQ(c->tag, context == 3 ? 33U : 0U);
    if (context == 1) completions.add_put(1, 0, 100);  // behind the others
  }
  EXPECT_EQ(completion()->context, 1U);
  EXPECT_FALSE(completions.has_ready());
  EXPECT_FALSE(completion());
}

TEST_F(EndingsTest, of_puts_that_come_first_are_taken_many_at_a_time) {
  for (Context context = 1; context <= 3; ++context) completions.add_put(context, 0, context * 10);
  completions.add(Kind::kNotice, 4, 0);
  completions.add_put(5, 0, 50);
  std::array<PutDone, 2> puts;
  EXPECT_EQ(completions.next_puts(puts), 2U);
  EXPECT_EQ(puts[0].context, 1U);
  EXPECT_EQ(puts[1].context, 2U);
  EXPECT_EQ(puts[1].length, 20U);
  EXPECT_EQ(completions.next_puts(puts), 1U);
  EXPECT_EQ(puts[0].context, 3U);
  EXPECT_TRUE(completions.has_ready());
  EXPECT_EQ(completions.next_puts(puts), 0U) << "another one is before the next put";
  EXPECT_EQ(completion()->context, 4U);
  EXPECT_EQ(completion()->context, 5U);
  EXPECT_FALSE(completions.has_ready());
}

TEST_F(EndingsTest, of_puts_keep_their_order_if_one_comes_while_some_are_taken) {
  completions.add_put(1, 0, 0);
  completions.add_put(2, 0, 0);
  EXPECT_EQ(completion()->context, 1U);
  completions.add_put(3, -ECANCELED, 0);
  EXPECT_EQ(completion()->context, 2U);
  const auto last = completion();
  EXPECT_EQ(last->context, 3U);
  EXPECT_EQ(last->status, -ECANCELED);
}

TEST_F(EndingsTest, name_the_message_that_is_taken_back) {
  end(5, 77);
  const auto entry = next_entry();
  ASSERT_TRUE(entry);
  ReceivedEntry received{};
  received.payload_length = entry->payload_length;
  std::copy(std::begin(entry->payload), std::end(entry->payload), std::begin(received.payload));
  EXPECT_EQ(load_msn(received), 77U);
}

TEST_F(EndingsTest, of_what_has_no_completion_are_not_outstanding) {
  endings.end(900, 5, std::nullopt);
  EXPECT_EQ(endings.outstanding(), 0U);
  EXPECT_FALSE(endings.empty());
  endings.on_end_ack({.i_id = 5});
  EXPECT_FALSE(completion());
  EXPECT_TRUE(endings.empty());
}

// protocol: 10.11
TEST_F(EndingsTest, are_repeated_while_the_peer_has_seen_them_and_says_nothing) {
  end(5);
  node_takes();
  unsigned repeated = 0;
  for (int i = 0; i < 20 && repeated == 0; ++i) {
    pass(clock.deadline() - clock.now());
    expire();
    while (const auto header = next()) {
      repeated += header->op() == Op::kEnd;
      if (header->op() != Op::kRequestState) continue;
      taken();
      repeats.on_slots(
          {.r_slots = kSlots, .sync = wire::decode_as<wire::RequestState>(*header).sync});
    }
    taken();
  }
  EXPECT_EQ(repeated, 1U);
}

// protocol: 10.11
TEST_F(EndingsTest, of_a_silent_peer_are_given_up) {
  end(5);
  const auto begun = clock.now();
  while (!endings.empty() && clock.now() < begun + 60 * kSecond) {
    node_takes();
    pass(clock.deadline() - clock.now());
    expire();
  }
  EXPECT_TRUE(completion());
  EXPECT_LE(clock.now(), begun + kAnswerPatience + kSecond);
}

TEST_F(EndingsTest, complete_when_the_connection_ends) {
  end(5);
  endings.fail();
  EXPECT_TRUE(completion());
  EXPECT_TRUE(endings.empty());
}

class CompletionsTest : public Parts {
 protected:
  void add_once_taken(Context context) {
    Completion c{};
    c.context = context;
    completions.add_once_taken(c);
  }
  std::vector<Context> ready() {
    std::vector<Context> all;
    while (const auto c = completion()) all.push_back(c->context);
    return all;
  }
};

TEST_F(CompletionsTest, come_in_order) {
  completions.add(Kind::kPut, 1, 0, 100).tag = 7;
  completions.add(Kind::kGet, 2, -ETIMEDOUT);
  const auto first = completion();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, Kind::kPut);
  EXPECT_EQ(first->context, 1U);
  EXPECT_EQ(first->length, 100U);
  EXPECT_EQ(first->tag, 7U);
  EXPECT_EQ(completion()->status, -ETIMEDOUT);
  EXPECT_FALSE(completions.has_ready());
}

TEST_F(CompletionsTest,
       that_return_memory_wait_until_the_node_has_taken_what_was_requested_before) {
  outbox.add(wire::to_header(wire::End{.i_id = 1}));
  add_once_taken(1);
  outbox.add(wire::to_header(wire::End{.i_id = 2}));
  add_once_taken(2);
  EXPECT_EQ(completions.held(), 2U);
  next();
  completions.release();
  EXPECT_EQ(ready(), std::vector<Context>{}) << "it was handed out, not taken";
  outbox.taken(1);
  completions.release();
  EXPECT_EQ(ready(), std::vector<Context>{1});
  node_takes();
  EXPECT_EQ(ready(), std::vector<Context>{2});
  EXPECT_EQ(completions.held(), 0U);
}

TEST_F(CompletionsTest, wait_for_nothing_if_the_node_has_taken_everything) {
  outbox.add(wire::to_header(wire::End{}));
  node_takes();
  add_once_taken(1);
  EXPECT_EQ(ready(), std::vector<Context>{1});
}

TEST_F(CompletionsTest, are_all_ready_when_the_connection_has_ended) {
  outbox.add(wire::to_header(wire::End{}));
  add_once_taken(1);
  completions.release_all();
  EXPECT_EQ(ready(), std::vector<Context>{1});
}

class FinishedTest : public Parts {};

// protocol: 9.24, 10.2
TEST_F(FinishedTest, requests_start_nothing_when_they_are_repeated) {
  EXPECT_FALSE(finished.is_over(5, Op::kRequestAnswer));
  finished.remember(5);
  EXPECT_TRUE(finished.is_over(5, Op::kRequestAnswer));
  EXPECT_FALSE(next()) << "what was not refused is not refused later";
}

TEST_F(FinishedTest, requests_that_were_refused_are_refused_again) {
  finished.refuse(Op::kRequestAnswer, 5);
  ASSERT_TRUE(next());
  EXPECT_TRUE(finished.is_over(5, Op::kRequestAnswer));
  const auto again = next();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->has(wire::flag::kReject));
  EXPECT_EQ(wire::decode_as<wire::RequestAnswer>(*again).i_id, 5U);
}

TEST_F(FinishedTest, requests_are_forgotten_when_thousands_came_after_them) {
  for (std::uint32_t i = 1; i <= 4'097; ++i) finished.remember(i);
  EXPECT_FALSE(finished.is_over(1, Op::kRequestAnswer));
  EXPECT_TRUE(finished.is_over(2, Op::kRequestAnswer));
  EXPECT_TRUE(finished.is_over(4'097, Op::kRequestAnswer));
}

}  // namespace
}  // namespace stp::test
